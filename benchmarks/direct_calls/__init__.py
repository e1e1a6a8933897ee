"""Libraries called as a good user calls them: loaded once, tensors ready, nothing checked."""

from direct_calls.calls import DIRECT_CALLS, Call

__all__ = ["DIRECT_CALLS", "Call"]
