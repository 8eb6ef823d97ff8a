"""What ``fit`` chooses from: models of several kinds, weights by validation, and their average.

:class:`Ensemble` fits and predicts; :class:`Candidate` is a row of its table; :func:`portfolio` lists the models that
:mod:`demonet.methods` has for a problem; :func:`ensemble_weights` is the selection alone.
"""

from demonet.ensemble.candidate import Candidate, Progress
from demonet.ensemble.ensemble import EFFORTS, Ensemble, portfolio
from demonet.ensemble.selection import ensemble_weights, greedy_weights

__all__ = ["EFFORTS", "Candidate", "Ensemble", "Progress", "ensemble_weights", "greedy_weights", "portfolio"]
