"""Find how a BERT-like model runs best on the CPUs you have, and run it that way."""

__all__ = ["__version__"]

__version__ = "0.1.0"
