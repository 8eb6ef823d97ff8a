"""scikit-learn's own checks of an estimator, as far as a graph input allows.

The checks pass tables of numbers, and the estimators declare (by their tags) that they take something else. So each is
tested through an adapter that turns a row of a table into a node with a twin beside it, or into a graph of two such
nodes. The adapter reads the table and does nothing more: every parameter, method and attribute is the estimator's own.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_classifier_multioutput,
    check_estimator,
    estimator_checks_generator,
    parametrize_with_checks,
)
from sklearn.utils.validation import check_is_fitted, validate_data
from torch_geometric.data import Data

from demonet import DEMONetClassifier, DEMONetGraphClassifier, DEMONetGraphRegressor, DEMONetRegressor
from demonet.estimators.graphs import GraphEstimator

PAIR = torch.tensor([[0, 1], [1, 0]])


class _Adapter:
    """A table is read as scikit-learn reads it, then passed on as nodes or graphs."""

    def fit(self, X, y):
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True)
        return self.fit_rows(X, y)

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
    def fit_rows(self, X, y):
        return self._fit(self._read(self.twins(X)), np.arange(len(X)), y)

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
    def fit_rows(self, X, y):
        return GraphEstimator.fit(self, self.pairs(X), y)

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


# The checks that the estimators as they are cannot pass when told that they take a table, each with the reason. Every
# one of them is passed through the adapter.
FITS = "fits a table of numbers; a node estimator has node ids in its place, a graph estimator graphs"
WORDS = "asks for the words of an error about a table: its width, its types, its missing values, its sparsity"
WIDTH = "asks for the number of columns of a table; n_features_in_ here counts the attributes of a node"
COMMON = {
    "check_complex_data": WORDS,
    "check_dict_unchanged": FITS,
    "check_dont_overwrite_parameters": FITS,
    "check_dtype_object": WORDS,
    "check_estimator_sparse_array": WORDS,
    "check_estimator_sparse_matrix": WORDS,
    "check_estimator_sparse_tag": WORDS,
    "check_estimators_dtypes": FITS,
    "check_estimators_empty_data_messages": WORDS,
    "check_estimators_fit_returns_self": FITS,
    "check_estimators_nan_inf": WORDS,
    "check_estimators_overwrite_params": FITS,
    "check_estimators_pickle": FITS,
    "check_f_contiguous_array_estimator": FITS,
    "check_fit2d_1feature": FITS,
    "check_fit2d_1sample": WORDS,
    "check_fit2d_predict1d": FITS,
    "check_fit_check_is_fitted": FITS,
    "check_fit_idempotent": FITS,
    "check_fit_score_takes_y": FITS,
    "check_methods_sample_order_invariance": FITS,
    "check_methods_subset_invariance": FITS,
    "check_n_features_in": WIDTH,
    "check_n_features_in_after_fitting": WIDTH,
    "check_pipeline_consistency": FITS,
    "check_positive_only_tag_during_fit": FITS,
    "check_readonly_memmap_input": FITS,
    "check_requires_y_none": WORDS,
    "check_supervised_y_2d": FITS,
    "check_transformer_data_not_an_array": FITS,
    "check_transformer_general": FITS,
    "check_transformer_preserve_dtypes": FITS,
}
CLASSIFIERS = dict.fromkeys(
    [
        "check_class_weight_classifiers",
        "check_classifier_data_not_an_array",
        "check_classifiers_classes",
        "check_classifiers_multilabel_output_format_decision_function",
        "check_classifiers_multilabel_output_format_predict",
        "check_classifiers_multilabel_output_format_predict_proba",
        "check_classifiers_multilabel_representation_invariance",
        "check_classifiers_one_label",
        "check_classifiers_regression_target",
        "check_classifiers_train",
    ],
    FITS,
)
REGRESSORS = dict.fromkeys(
    [
        "check_regressor_data_not_an_array",
        "check_regressor_multioutput",
        "check_regressors_int",
        "check_regressors_no_decision_function",
        "check_regressors_train",
    ],
    FITS,
)


class _SaysTable:
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


class Nodes(_SaysTable, DEMONetClassifier):
    pass


class Graphs(_SaysTable, DEMONetGraphClassifier):
    pass


class NodeNumbers(_SaysTable, DEMONetRegressor):
    pass


class GraphNumbers(_SaysTable, DEMONetGraphRegressor):
    pass


AS_THEY_ARE = [
    Nodes(graph=nx.path_graph(50), model="network", epochs=2),
    Graphs(model="network", epochs=2),
    NodeNumbers(graph=nx.path_graph(50), model="network", epochs=2),
    GraphNumbers(model="network", epochs=2),
]
ADAPTED = [
    NodesOfATable(preset="default", features="attributes", model="network", epochs=30, lr=0.3),
    GraphsOfATable(preset="paper", model="network", epochs=10, lr=0.05, hidden=8),
    NumbersOfATable(preset="default", features="attributes", model="network", epochs=60, lr=0.2),
    GraphNumbersOfATable(preset="paper", model="network", epochs=20, lr=0.05, hidden=8),
]


def exempt(estimator):
    return COMMON | (CLASSIFIERS if is_classifier(estimator) else REGRESSORS)


@pytest.mark.parametrize("estimator", AS_THEY_ARE, ids=lambda estimator: type(estimator).__name__)
def test_as_they_are(estimator):
    """Exactly the checks in the table fail: one that passes does not belong there."""
    expected = exempt(estimator)
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    found = {status: {r["check_name"] for r in results if r["status"] == status} for status in ("failed", "xfail")}
    assert found == {"failed": set(), "xfail": set(expected)}
    assert sum(result["status"] == "passed" for result in results) >= 15


@parametrize_with_checks(ADAPTED)
def test_through_the_adapter(estimator, check):
    check(estimator)


def test_what_is_exempt_is_checked_through_the_adapter():
    for estimator in ADAPTED:
        asked = {check.func.__name__ for _, check in estimator_checks_generator(estimator)}
        assert set(exempt(estimator)) <= asked


def test_tables_of_labels_through_the_adapter():
    for estimator in ADAPTED[:2]:
        check_classifier_multioutput(type(estimator).__name__, estimator)


def test_the_estimators_say_that_they_take_no_table():
    for estimator in (DEMONetClassifier(), DEMONetGraphClassifier(), DEMONetRegressor(), DEMONetGraphRegressor()):
        tags = get_tags(estimator)
        assert not tags.input_tags.two_d_array
        assert tags.estimator_type == ("classifier" if "Classifier" in type(estimator).__name__ else "regressor")
