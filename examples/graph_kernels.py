"""Classify graphs with graph kernels and a support vector machine."""

import numpy as np
from sklearn.svm import SVC

from demonet import DegreeWLKernel, MeanWLKernel, WLSubtreeKernel
from demonet.data.synthetic import small_graphs

graphs = small_graphs(100, noise=0.2)
y = np.array([int(graph.y) for graph in graphs])
train, test = graphs[:60], graphs[60:]
for kernel in (WLSubtreeKernel(n_iter=2, normalize=True), MeanWLKernel(n_iter=2), DegreeWLKernel(n_iter=2)):
    machine = SVC(kernel="precomputed", C=10).fit(kernel.fit_transform(train), y[:60])
    print(f"{type(kernel).__name__}: {machine.score(kernel.transform(test), y[60:]):.3f}")
