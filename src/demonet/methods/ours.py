"""The DEMO-Nets that are compared with the baselines, by name; and to which problems a method of both applies."""

from __future__ import annotations

from demonet.methods import get
from demonet.train.presets import Family

# DEMO-Net_m has mean pooling, and is for graphs only.
OURS: dict[str, dict[str, str]] = {
    "demonet-hash": {"scheme": "hash"},
    "demonet-weight": {"scheme": "weight"},
    "demonet-smooth": {"scheme": "smooth"},
    "demonet-m-hash": {"scheme": "hash", "pooling": "mean"},
    "demonet-m-weight": {"scheme": "weight", "pooling": "mean"},
    "demonet-default": {},
}


def applies(name: str, family: Family) -> bool:
    """Whether a method applies to a family of problems: nodes or graphs, with or without attributes."""
    if name.startswith("demonet-m-"):
        return family == "graphs"
    if name.startswith("demonet-"):
        return True
    if name.startswith("attribute-") and family == "nodes":
        return False
    return ("graphs" if family == "graphs" else "nodes") in get(name).kinds
