"""What ``fit`` chooses from: members of several kinds, weights by validation, and their average.

:class:`Ensemble` fits and predicts; :class:`Candidate` is a row of its table; :class:`Member` is what a model of one's
own must offer; :func:`portfolio` lists the members for a problem; :func:`ensemble_weights` is the selection alone.
"""

from demonet.ensemble.ensemble import Candidate, Ensemble, Progress
from demonet.ensemble.member import Labelled, Member
from demonet.ensemble.portfolio import EFFORTS, portfolio
from demonet.ensemble.selection import ensemble_weights, greedy_weights

__all__ = [
    "EFFORTS",
    "Candidate",
    "Ensemble",
    "Labelled",
    "Member",
    "Progress",
    "ensemble_weights",
    "greedy_weights",
    "portfolio",
]
