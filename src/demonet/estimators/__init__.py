"""scikit-learn estimators: fit, predict, embed, explain and save DEMO-Nets for nodes and graphs."""

from demonet.estimators.base import DEMONetEstimator
from demonet.estimators.explain import Explanation, ScoreParts
from demonet.estimators.graphs import DEMONetGraphClassifier, DEMONetGraphRegressor
from demonet.estimators.nodes import DEMONetClassifier, DEMONetRegressor
from demonet.estimators.reasons import Reason

__all__ = [
    "DEMONetClassifier",
    "DEMONetGraphClassifier",
    "DEMONetGraphRegressor",
    "DEMONetRegressor",
    "Explanation",
    "Reason",
    "ScoreParts",
    "estimator_class",
]


def estimator_class(kind: str, task: str) -> type[DEMONetEstimator]:
    """The class of estimators of ``"nodes"`` or ``"graphs"`` for a task."""
    if kind == "nodes":
        return DEMONetRegressor if task == "regress" else DEMONetClassifier
    return DEMONetGraphRegressor if task == "regress" else DEMONetGraphClassifier
