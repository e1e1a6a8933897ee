"""Requests that arrive as they do in life, and what became of them."""

__all__: list[str] = []
