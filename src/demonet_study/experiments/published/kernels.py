"""Published results of the Weisfeiler-Lehman subtree kernel."""

from __future__ import annotations

import statistics
from functools import partial
from itertools import product

import numpy as np
from sklearn.svm import SVC

from demonet.data import load
from demonet.data.splits import k_fold
from demonet.kernels import WLSubtreeKernel
from demonet.methods.base import labels
from demonet_study.experiments.published.results import PublishedResult
from demonet_study.methods.wl import WL

FOLDS = 10
SETTINGS = tuple(product(range(1, 7), WL.defaults.normalize))  # number of rounds, and whether features are normalized


def by_strength(dataset: str, setting: int, folds: int = FOLDS) -> list[list[float]]:
    """Xu et al.: train on nine folds, test on the tenth; for each C, the accuracies of all folds."""
    data = load(dataset)
    y = labels(data).numpy()
    tests = [split.test.numpy() for split in k_fold(labels(data), folds, seed=0)]
    splits = [(np.setdiff1d(np.arange(y.size), test), test) for test in tests]
    gram = WLSubtreeKernel(*SETTINGS[setting]).fit_transform(data)
    gram /= np.mean(np.diagonal(gram))
    machines = [SVC(C=strength, kernel="precomputed") for strength in WL.defaults.strengths]
    return [
        [
            float(machine.fit(gram[np.ix_(rest, rest)], y[rest]).score(gram[np.ix_(test, rest)], y[test]))
            for rest, test in splits
        ]
        for machine in machines
    ]


def best_setting(found: list[list[list[float]]]) -> list[float]:
    """One number of rounds (1 to 6) and one C for all folds, by the best mean test accuracy.

    They have no validation set. Normalization, which they do not mention, is selected in the same way.
    """
    return max((accuracies for strengths in found for accuracies in strengths), key=statistics.mean)


def by_another_fold(dataset: str, fold: int, folds: int = FOLDS) -> float:
    """Stricter: eight folds train, the ninth selects rounds and C, the tenth is tested once."""
    data = load(dataset)
    y = labels(data)
    split = k_fold(y, folds, seed=0)[fold]
    return WL().fit(data, split).score(split.test, y)


_BY_TEST = "10-fold, rounds and C by mean test (Xu et al. 2019)"
_BY_FOLD = "10-fold, rounds and C by another fold (stricter than Xu et al. 2019)"
PRINTED = {"MUTAG": (0.904, 0.057), "PROTEINS": (0.750, 0.031)}

RESULTS = [
    *(
        PublishedResult("wl", dataset, _BY_TEST, *printed, len(SETTINGS), partial(by_strength, dataset), best_setting)
        for dataset, printed in PRINTED.items()
    ),
    *(
        PublishedResult("wl", dataset, _BY_FOLD, *printed, FOLDS, partial(by_another_fold, dataset))
        for dataset, printed in PRINTED.items()
    ),
]
