"""Padded and packed forms of one encoder, each in several libraries."""
