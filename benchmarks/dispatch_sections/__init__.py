"""Parts of `benchmarks/dispatch.py`."""
