"""What is this host, and how much of it is ours?"""

from pinstripe.machine.description import Core, CoreKind, Machine, Node

__all__ = ["Core", "CoreKind", "Machine", "Node"]
