"""Files of texts, line by line: what is in them, and what is wrong with a line."""

from pinstripe.texts.line import BadLine, TextLine
from pinstripe.texts.reading import LINE_LIMIT_BYTES, TextFile, read_texts

__all__ = ["LINE_LIMIT_BYTES", "BadLine", "TextFile", "TextLine", "read_texts"]
