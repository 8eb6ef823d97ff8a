"""scikit-learn's own checks of an estimator, as far as a graph input allows.

The checks pass tables of numbers, and the estimators declare (by their tags) that they take something else. So each is
tested through an adapter that turns a row of a table into a node with a twin beside it, or into a graph of two such
nodes. The adapter reads the table and does nothing more: every parameter, method and attribute is the estimator's own.
"""

import numpy as np
import torch
from sklearn.utils.estimator_checks import check_classifier_multioutput, parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data
from torch_geometric.data import Data

from demonet import DEMONetClassifier, DEMONetGraphClassifier, DEMONetGraphRegressor, DEMONetRegressor
from demonet.estimators.graphs import GraphEstimator

PAIR = torch.tensor([[0, 1], [1, 0]])


class _Adapter:
    """A table is read as scikit-learn reads it, then passed on as nodes or graphs."""

    def fit(self, X, y, sample_weight=None):
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True)
        return self.fit_rows(X, y, sample_weight)

    def read(self, X):
        check_is_fitted(self, "model_")
        return validate_data(self, X, dtype=np.float64, reset=False)

    def score(self, X, y, sample_weight=None):
        return self._score(y, self.predict(X), sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


class _Nodes(_Adapter):
    def fit_rows(self, X, y, sample_weight):
        return self._fit(self._read(self.twins(X), learn=True), np.arange(len(X)), y, None, sample_weight)

    def _outputs(self, X, graph=None):
        X = self.read(X)
        return super()._outputs(np.arange(len(X)), self.twins(X))

    def transform(self, X):
        X = self.read(X)
        return super().transform(np.arange(len(X)), graph=self.twins(X))

    @staticmethod
    def twins(X):
        # With empty rows up to a round number: another number of nodes is another order of additions, and scikit-learn
        # compares a few rows with all of them to the last digit.
        X = np.concatenate([X, np.zeros((-len(X) % 512, X.shape[1]), X.dtype)])
        n = len(X)
        rows, twins = torch.arange(n), torch.arange(n, 2 * n)
        x = torch.from_numpy(np.concatenate([X, X])).float()
        edge_index = torch.stack([torch.cat([rows, twins]), torch.cat([twins, rows])])
        return Data(x=x, edge_index=edge_index, num_nodes=2 * n)


class _Graphs(_Adapter):
    def fit_rows(self, X, y, sample_weight):
        return GraphEstimator.fit(self, self.pairs(X), y, sample_weight)

    def _outputs(self, X):
        return np.concatenate([super(_Graphs, self)._outputs([pair]) for pair in self.pairs(self.read(X))])

    def transform(self, X):
        return np.concatenate([super(_Graphs, self).transform([pair]) for pair in self.pairs(self.read(X))])

    @staticmethod
    def pairs(X):
        # One by one, as the place of a row in a matrix decides on some processors in which order it is added up, and
        # scikit-learn compares rows in another order to the last digit. For batches see test_graphs.py.
        x = torch.tensor(X, dtype=torch.float32)
        return [Data(x=torch.stack([row, row]), edge_index=PAIR, num_nodes=2) for row in x]


class NodesOfATable(_Nodes, DEMONetClassifier):
    pass


class NumbersOfATable(_Nodes, DEMONetRegressor):
    pass


class GraphsOfATable(_Graphs, DEMONetGraphClassifier):
    pass


class GraphNumbersOfATable(_Graphs, DEMONetGraphRegressor):
    pass


ADAPTED = [
    NodesOfATable(preset="default", features="attributes", model="network", epochs=30, lr=0.3),
    GraphsOfATable(preset="paper", model="network", epochs=10, lr=0.05, hidden=8),
    NumbersOfATable(preset="default", features="attributes", model="network", epochs=60, lr=0.2),
    GraphNumbersOfATable(preset="paper", model="network", epochs=20, lr=0.05, hidden=8),
]


FAILING = {
    "check_sample_weight_equivalence_on_dense_data": "of n items other ones are held out than of these and their copies"
}


@parametrize_with_checks(ADAPTED, expected_failed_checks=lambda estimator: FAILING)
def test_through_the_adapter(estimator, check):
    check(estimator)


def test_tables_of_labels_through_the_adapter():
    for estimator in ADAPTED[:2]:
        check_classifier_multioutput(type(estimator).__name__, estimator)
