"""Words to calls, errors to exit codes."""

from pinstripe.cli.main import main

__all__ = ["main"]
