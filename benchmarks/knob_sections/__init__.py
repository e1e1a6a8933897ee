"""Parts of `benchmarks/knobs.py`."""
