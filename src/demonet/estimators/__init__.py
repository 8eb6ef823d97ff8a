"""scikit-learn estimators: fit, predict, embed, explain and save DEMO-Nets for nodes and graphs."""

from demonet.estimators.explain import Explanation, ScoreParts
from demonet.estimators.graphs import DEMONetGraphClassifier, DEMONetGraphRegressor
from demonet.estimators.nodes import DEMONetClassifier, DEMONetRegressor

__all__ = [
    "DEMONetClassifier",
    "DEMONetGraphClassifier",
    "DEMONetGraphRegressor",
    "DEMONetRegressor",
    "Explanation",
    "ScoreParts",
]
