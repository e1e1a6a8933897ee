"""Times of BERT-base on two two-socket machines, as published in 2021.

Read off the bars' labels of two posts on huggingface.co/blog, "Scaling up BERT-like model Inference on modern CPU":
part 1 (April 2021), figure 8, and part 2 (November 2021), figure 8.
"""

from typing import Final

__all__ = ["CASCADE_LAKE_MS", "CASCADE_LAKE_TEXTS", "ICE_LAKE_MS"]

CASCADE_LAKE_TEXTS: Final = {48: 8, 24: 4, 12: 2, 6: 1}
"""Texts in each instance's batch by its cores: 8 texts at a time, spread over 1, 2, 4 and 8 instances."""

CASCADE_LAKE_MS: Final = {
    48: {20: 39, 32: 35, 128: 95, 384: 568, 512: 863},
    24: {20: 23, 32: 27, 128: 61, 384: 183, 512: 359},
    12: {20: 24, 32: 26, 128: 50, 384: 151, 512: 220},
    6: {20: 30, 32: 33, 128: 52, 384: 162, 512: 242},
}
"""Milliseconds of the slowest instance while all ran, by its cores, then by tokens of each text.

Part 1: PyTorch 1.8.1 with glibc, AWS c5.metal, two Xeon Platinum 8275CL of 24 cores, one thread a core.
"""

ICE_LAKE_MS: Final = {
    1: {20: 132, 32: 143, 128: 281, 384: 1031},
    4: {20: 32, 32: 35, 128: 73, 384: 236, 512: 385},
    16: {20: 14, 32: 16, 128: 29, 384: 72, 512: 138},
    40: {20: 9, 32: 9, 128: 16, 384: 42, 512: 47},
    80: {20: 11, 32: 13, 128: 23, 384: 37, 512: 76},
}
"""Milliseconds of one instance alone on the machine, one text, by its cores, then by its tokens.

Part 2: TorchScript of PyTorch 1.9.0 with glibc, two Xeon Platinum 8380 of 40 cores. 512 tokens on one core crashed.
"""
