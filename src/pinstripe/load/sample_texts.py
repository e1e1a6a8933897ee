"""Texts for a load that brings none."""

from typing import Final

__all__ = ["SAMPLE_TEXTS"]

SAMPLE_TEXTS: Final = (
    "weather tomorrow",
    "How do I reset my password?",
    "best pasta near the station",
    "The train leaves at nine.",
    "What is the difference between a lease and a rental agreement?",
    "Please send the invoice to the address in the attachment.",
    "A recipe for bread that needs no kneading",
    "The museum opens at ten on weekdays and at eleven on Sundays; the last tickets are sold an hour before it closes.",
    "Our flight was cancelled, so we took the night train, slept little, and arrived in time for breakfast.",
    "is it safe to charge a phone overnight",
    "Water the plants every third day, but keep the cactus by the window dry until the first warm week of spring.",
    """The committee read forty proposals, asked eight groups to speak for ten minutes each, argued about two of them
until late in the evening, and in the end gave the prize to the one that nobody had written about: a plan to mend the
old bridge by hand, stone by stone, with the people who cross it every day.""",
)
