r"""RolX (Henderson et al., KDD'12): how much of each role a node has.

ReFeX features V are factored into nodes by roles and roles by features, :math:`V \approx G F`, nothing below zero; the
number of roles is that of the shortest description of V. The description counts errors by their Kullback-Leibler
divergence, so that is what the factorisation makes small too: features of a node span four orders of magnitude, and
squared errors would see the largest alone.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from torch_geometric.data import Data

from demonet.baselines.description import description_length
from demonet.baselines.embedding import Embedding, Float
from demonet.baselines.refex import refex
from demonet.baselines.settings_structural import ROLX, RolXSettings
from demonet.baselines.structure import simple_adjacency
from demonet.errors import DemonetError


class RolX(Embedding):
    """Node roles from recursive features.

    Attributes:
        lengths: The shortest description at each number of roles that was tried, once embedded.
    """

    name = "rolx"
    defaults = ROLX
    settings: RolXSettings
    lengths: dict[int, float]

    def embed(self, data: Data, seed: int = 0) -> Float:
        """``[nodes, roles]`` the share of each role in every node, before they are made to sum to one."""
        V, _ = refex(simple_adjacency(data), self.settings.share, self.settings.rounds)
        n, features = V.shape
        if self.settings.roles is not None:
            if self.settings.roles > min(n, features):
                raise DemonetError(
                    f"{self.settings.roles} roles of {n} nodes with {features} features", hint="as many at most"
                )
            return self._factor(V, self.settings.roles, seed)[0]
        self.lengths = {}
        best, G = np.inf, np.ones((n, 1))
        if not V.any():  # no edges, one role
            return G
        for roles in range(1, min(n, features, self.settings.most_roles) + 1):
            factors = self._factor(V, roles, seed)
            self.lengths[roles] = min(description_length(V, *factors, bits) for bits in self.settings.bits)
            if self.lengths[roles] < best:
                best, G = self.lengths[roles], factors[0]
        return G

    def _factor(self, V: Float, roles: int, seed: int) -> tuple[Float, Float]:
        model = NMF(
            roles,
            init="nndsvda",
            solver="mu",
            beta_loss="kullback-leibler",
            max_iter=self.settings.iterations,
            random_state=seed,
        )
        with warnings.catch_warnings():  # a factorisation that still improves is judged by its description too
            warnings.simplefilter("ignore", ConvergenceWarning)
            G = model.fit_transform(V)
        return G, model.components_
