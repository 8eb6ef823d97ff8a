"""A palette for all kinds of colour vision, in light and dark mode.

Each colour has a counterpart of the same hue for dark mode. Figures are built with the light one; the page replaces it
in dark mode. Under simulated protanopia, deuteranopia and tritanopia, every pair of colours of one mode is at least as
distinct as in the Okabe-Ito palette. Every colour has a contrast of 3 : 1 with the background.
"""

from __future__ import annotations

GROUND = ("#ffffff", "#1b1f26")
"""The background, light and dark; ``--surface`` in ``style.css``."""

CATEGORICAL = (
    ("#2965dd", "#5b80c6"),  # blue
    ("#c01c05", "#fab5a8"),  # red
    ("#176c2b", "#5bb668"),  # green
    ("#824185", "#d590d7"),  # purple
    ("#bc7b18", "#bf7a03"),  # amber
    ("#0a99a0", "#4fe5ed"),  # teal
    ("#4e169c", "#a382fb"),  # indigo
    ("#a85364", "#ca4867"),  # rose
)
NEUTRAL = ("#868e99", "#79828f")
"""For what is only a reference: floors, links between points."""

DARK_TWIN = dict((*CATEGORICAL, NEUTRAL))
"""Light colour to dark colour."""


def colour(index: int) -> str:
    """The light colour of a category; colours repeat after the last one."""
    return CATEGORICAL[index % len(CATEGORICAL)][0]
