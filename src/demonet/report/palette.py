"""Colours that people with any colour vision can tell apart, on light and on dark ground.

Each colour has a dark twin of the same hue. Figures are built with the light one; the page swaps in the twin when it
is read in the dark. Every pair of colours of one theme stays apart under simulated protanopia, deuteranopia and
tritanopia at least as well as the Okabe-Ito palette does, and every colour has a contrast of 3 : 1 with its ground.
"""

from __future__ import annotations

GROUND = ("#ffffff", "#1b1f26")
"""What a figure is drawn on, light and dark; ``style.css`` has the same two colours as ``--surface``."""

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
"""For what is only there to compare with: floors, links between points."""

DARK_TWIN = dict((*CATEGORICAL, NEUTRAL))
"""Light colour to dark colour."""


def colour(index: int) -> str:
    """The light colour of the ``index``-th category; after the last one they start again."""
    return CATEGORICAL[index % len(CATEGORICAL)][0]
