"""scikit-learn classes over ``train/``: fit, predict, embed, save and explain with a graph in any form."""

from demonet.estimators.explain import Explanation
from demonet.estimators.graphs import DEMONetGraphClassifier
from demonet.estimators.nodes import DEMONetClassifier
from demonet.estimators.score_parts import ScoreParts

__all__ = ["DEMONetClassifier", "DEMONetGraphClassifier", "Explanation", "ScoreParts"]
