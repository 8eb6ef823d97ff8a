r"""The degree-specific kernel between nodes: DEMO-Net's layer with Gaussian priors on its maps, in closed form.

One layer :math:`f(v) = W_0' x_v + (W_g + W_{d(v)})' a_v + b_{d(v)}` (Eq. 6 and 7), with independent Gaussian priors on
the entries of its maps, is a Gaussian process with covariance

.. math::
    k(u, v) = s_0 \langle x_u, x_v \rangle + (s_g + s_d\, \kappa(d_u, d_v)) \langle a_u, a_v \rangle
        + s_b\, \kappa(d_u, d_v) + s_r\, \rho(u, v) + s_c

where :math:`\kappa` is the scheme, :math:`\rho` a radial kernel of structural descriptors and :math:`s_c` a constant.
:class:`NodeInputs` learns the preprocessing, :class:`NodeRows` holds the inputs of some nodes, :class:`NodePair` gives
the kernel between two views under any :class:`NodeSetting`. The nodes of another graph, with degrees never seen, are
another view.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_edge_index, check_features
from demonet.data.rows import Rows, is_sparse, pack, to_rows, to_torch, unpack
from demonet.degree.keep import Memo
from demonet.errors import DemonetError
from demonet.features.attributes import document_weights, matrix_kind, term_rows
from demonet.features.graph import adjacency as adjacency_of
from demonet.features.graph import degree as degree_of
from demonet.features.structure import AROUND, GivenSurroundings, radial, settled
from demonet.nn.hashing import hash_functions

Scheme = Literal["smooth", "weight", "hash"]
Array = NDArray[Any]

SCHEMES = ("smooth", "weight", "hash")
DESCRIPTORS = (
    *AROUND,
    "log-degree of neighbours, two hops",
    "mean of neighbours' deviation",
    "log-degree of neighbours, three hops",
    "walks of two steps",
    "closed triangles",
)
HASH_COLUMNS = 256  # over which the share of collisions is counted
MAX_PRODUCTS = 2e8  # multiplications for the second hop and for triangles; beyond, they are left out
QUANTILES = 512
ADDITIVE_WIDTH = 0.2  # in deviations of a descriptor's ranks
ENTRIES = 2**26  # of sparse rows that are made dense at once
DENSE = 0.05  # share of entries from which on dense products are faster
KEPT = 2**24  # entries up to which the additive kernel and those of degrees are kept for other settings
CACHED = 2**17  # entries of a kernel that stay in a processor's cache while they are computed
_LAST: Memo[Array] = Memo()  # descriptors of the last graph, for the same edges with other attributes


def kappa(
    left: Tensor,
    right: Tensor,
    scheme: Scheme = "smooth",
    *,
    width: float = 0.6,
    hash_size: int = 256,
    hash_seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    r"""``[len(left), len(right)]``: how much two degrees share, 1 where they are equal.

    ==========  ===============================================================================================
    ``weight``  :math:`\delta(d, d')`: a map for each degree, nothing shared
    ``smooth``  :math:`\exp(-(\log(1 + d) - \log(1 + d'))^2 / 2 l^2)` with width :math:`l`
    ``hash``    the signed share of collisions, the mean over columns j of
                :math:`\xi_2^d(j)\, \xi_2^{d'}(j)\, \delta(\xi_1^d(j), \xi_1^{d'}(j))` (Eq. 8)
    ==========  ===============================================================================================

    >>> kappa(torch.tensor([0, 3]), torch.tensor([3, 7]), width=1.0).numpy().round(3).tolist()
    [[0.383, 0.115], [1.0, 0.786]]
    """
    (left, row), (right, column) = (torch.unique(d, return_inverse=True) for d in (left, right))
    if scheme == "smooth":
        gap = torch.log1p(left.to(torch.float64))[:, None] - torch.log1p(right.to(torch.float64))
        table = torch.exp(-0.5 * (gap / width) ** 2)
    elif scheme == "weight":
        table = left[:, None] == right
    elif scheme == "hash":
        columns = torch.arange(HASH_COLUMNS, device=left.device)
        (p, s), (q, t) = (hash_functions(d[:, None], columns, seed=hash_seed, size=hash_size) for d in (left, right))
        table = torch.stack([((a == q) * b * t).double().mean(1) for a, b in zip(p, s, strict=True)])
    else:
        raise DemonetError(f"scheme {scheme!r} of the degree kernel", hint=f"known are {', '.join(SCHEMES)}")
    return table.to(dtype)[row][:, column]


@dataclass(frozen=True)
class NodeSetting:
    """Variances of the terms of the kernel, and their shape; ``degree=0`` removes the degree-specific map.

    Attributes:
        seed, shared, degree, bias: :math:`s_0, s_g, s_d, s_b`.
        hop: Weight of the second hop beside the first, both brought to unit length.
        structure: :math:`s_r`; ``reach`` is the width of its radial kernel.
        additive: The variance of a second structural kernel, the mean of a narrow radial kernel of each descriptor, in
            which a rule about one descriptor is not blurred by the others.
        constant: :math:`s_c`.
        scheme, width, hash_size, hash_seed: See :func:`kappa`.
        height: Above 0, the first three terms, k together, become ``exp(-(1 - k / sqrt(k(u, u) k(v, v))) / height)``;
            bias and structure stay beside them, so that the degree meets the attributes in the degree term alone.
    """

    seed: float = 1.0
    shared: float = 0.2
    degree: float = 0.2
    bias: float = 0.1
    hop: float = 0.0
    structure: float = 0.0
    reach: float = 1.0
    additive: float = 0.0
    constant: float = 1.0
    scheme: Scheme = "smooth"
    width: float = 0.6
    hash_size: int = 256
    hash_seed: int = 0
    height: float = 0.0

    def __post_init__(self) -> None:
        for name in ("seed", "shared", "degree", "bias", "hop", "structure", "additive", "constant", "height"):
            if not getattr(self, name) >= 0:
                raise DemonetError(f"{name}={getattr(self, name)} in a kernel setting", hint="variances are 0 or more")

    def canonical(self) -> Self:
        """The same kernel, with fields that it does not read at their defaults."""
        unread: dict[str, Any] = {}
        if not self.structure:
            unread["reach"] = 1.0
        if not (self.degree or self.bias):
            unread["width"] = 0.6
        return replace(self, **unread)

    def kappa(self, left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
        """The scheme's kernel of degrees."""
        more = {"width": self.width, "hash_size": self.hash_size, "hash_seed": self.hash_seed}
        return kappa(left, right, self.scheme, dtype=dtype, **more)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class NodeRows:
    """The inputs of n nodes, on the CPU.

    Attributes:
        own: ``[n, F]`` the preprocessed attributes :math:`x`, rows of unit length, dense or CSR.
        near: For each hop, ``[n, F]`` the mean over neighbours brought to unit length, :math:`a`; zero without any.
        degree: ``[n]`` the degrees.
        task: ``[n]`` the degrees that the degree-specific map reads: ``degree``, unless a study shuffles them.
        structure: ``[n, p]`` ranks of the structural descriptors, of variance about one.
    """

    own: Rows
    near: tuple[Rows, ...]
    degree: Array
    task: Array
    structure: Array

    def __len__(self) -> int:
        return len(self.degree)

    def take(self, rows: Array) -> NodeRows:
        """The view of some of the nodes."""
        return NodeRows(
            self.own[rows], tuple(a[rows] for a in self.near), self.degree[rows], self.task[rows], self.structure[rows]
        )

    def shuffled(self, seed: int) -> NodeRows:
        """The degree-specific map reads the degree of a random other node; all else stays."""
        return replace(self, task=np.random.default_rng(seed).permutation(self.task))

    def pair(self, other: NodeRows, dtype: torch.dtype, device: torch.device | str) -> NodePair:
        """The kernels between these nodes and others."""
        return NodePair(self, other, dtype, device)

    def mean_log_degree(self) -> Array:
        """``[n]`` log(1 + degree)."""
        return np.log1p(self.degree)

    def space(self, degree: bool, linear: bool) -> tuple[NodeSetting, list[tuple[str, list[Any]]]]:
        """Where the search for a setting starts, and the values of each field that it tries in turn.

        Args:
            degree: Whether the degree-specific map may be used.
            linear: Leave out the nonlinear map.
        """
        start = NodeSetting() if degree else NodeSetting(degree=0.0)
        shared: list[Any] = [{"shared": s, "degree": s if degree else 0.0} for s in (0.03, 0.08, 0.2, 0.5, 1.5)]
        choices = [("shared", shared)]
        if degree:
            choices += [("degree", [0.0, 0.05, 0.2, 0.5, 1.5]), ("width", [0.3, 0.6, 1.2])]
        if len(self.near) > 1:
            choices.append(("hop", [0.0, 0.5, 2.0]))
        structure = [{"structure": s, "reach": r} for s in (0.1, 0.5, 2.0) for r in (0.5, 1.0)]
        choices += [
            ("structure", [{"structure": 0.0, "reach": 1.0}, *structure]),
            ("additive", [0.0, 0.5, 3.0]),
            ("bias", [0.0, 0.1, 0.5, 2.0]),
        ]
        if not linear:
            choices.append(("height", [0.0, 0.3, 1.0]))
        return start, [*choices, ("seed", [0.1, 0.3, 1.0])]

    def state(self) -> dict[str, Tensor]:
        """Plain arrays."""
        rows = {"own": self.own, "degree": self.degree, "task": self.task, "structure": self.structure}
        rows |= {f"near{i}": near for i, near in enumerate(self.near)}
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in pack(rows).items()}

    @classmethod
    def from_state(cls, arrays: Mapping[str, Tensor]) -> NodeRows:
        """The view that gave these arrays."""
        rows = unpack({name: array.numpy() for name, array in arrays.items()})
        near = tuple(rows.pop(f"near{i}") for i in range(len(rows) - 4))
        return cls(near=near, **rows)


class Pair(ABC):
    """Kernels between two views; what settings share is computed once.

    Args:
        left, right: The items of the rows and of the columns.
        dtype, device: Of the Gram matrices.
    """

    def __init__(self, left: Any, right: Any, dtype: torch.dtype, device: torch.device | str) -> None:
        self.left, self.right, self.dtype, self.device = left, right, dtype, device
        self._kept: dict[Any, Tensor] = {}

    @abstractmethod
    def terms(self, s: Any) -> Iterator[tuple[str, Tensor]]:
        """The kernel of a setting term by term."""

    def gram(self, s: Any) -> Tensor:
        """``[len(left), len(right)]``: the kernel."""
        return total(self.terms(s))

    def _once(self, key: Any, make: Callable[[], Tensor]) -> Tensor:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def _products(self, left: Rows, right: Rows) -> Tensor:
        return products(left, right, self.dtype, self.device)

    def _constant(self, s: NodeSetting) -> Iterator[tuple[str, Tensor]]:
        if s.constant:
            shape = len(self.left), len(self.right)
            yield "constant", torch.full(shape, s.constant, dtype=self.dtype, device=self.device)


class NodePair(Pair):
    """Kernels between nodes."""

    def _hop(self, hop: int) -> Tensor:
        return self._once(hop, lambda: self._products(self.left.near[hop], self.right.near[hop]))

    def _kappa(self, s: NodeSetting, name: str) -> Tensor:
        left, right = (torch.from_numpy(getattr(view, name)).to(self.device) for view in (self.left, self.right))
        if len(left) * len(right) > KEPT:
            return s.kappa(left, right, self.dtype)
        key = name, s.scheme, s.width, s.hash_size, s.hash_seed
        return self._once(key, lambda: s.kappa(left, right, self.dtype))

    def terms(self, s: NodeSetting) -> Iterator[tuple[str, Tensor]]:
        """The kernel term by term: seed, shared, degree (together ``map`` under a map), bias, structure, constant."""
        if s.height:
            yield "map", self._map(s)
        else:
            yield from self._linear(s)
        if s.bias:
            yield "bias", s.bias * self._kappa(s, "degree")
        if s.structure or s.additive:
            yield "structure", self._structural(s)
        yield from self._constant(s)

    def _linear(self, s: NodeSetting) -> Iterator[tuple[str, Tensor]]:
        if s.seed:
            yield "seed", s.seed * self._once("own", lambda: self._products(self.left.own, self.right.own))
        if s.shared or s.degree:
            near = self._hop(0)
            if s.hop and len(self.left.near) > 1:
                near = near + s.hop * self._hop(1)
            yield "shared", s.shared * near
            if s.degree:
                yield "degree", s.degree * self._kappa(s, "task") * near

    def _structural(self, s: NodeSetting) -> Tensor:
        left, right = (dense(view.structure, self.dtype, self.device) for view in (self.left, self.right))
        if not s.additive or left.size(0) * right.size(0) > KEPT:
            return structural(left, right, s)
        apart = self._once("additive", lambda: structural(left, right, replace(s, structure=0.0, additive=1.0)))
        return structural(left, right, replace(s, additive=0.0)).add_(apart, alpha=s.additive)

    def _map(self, s: NodeSetting) -> Tensor:
        lengths = (dense(self_kernel(view, s), self.dtype, self.device) for view in (self.left, self.right))
        left, right = (one.clamp(min=1e-12).rsqrt() for one in lengths)
        return torch.exp((left[:, None] * total(self._linear(s)) * right - 1) / s.height)


def structural(left: Tensor, right: Tensor, s: NodeSetting) -> Tensor:
    """The kernel of ranked structural descriptors: radial in all of them together, and in each of them apart."""
    out = left.new_zeros(len(left), len(right))
    if s.structure:
        out += s.structure * torch.exp(-0.5 / s.reach**2 * torch.cdist(left, right).square() / left.size(1))
    if s.additive:
        rows = max(1, len(left) if left.is_cuda else CACHED // max(1, len(right)))
        for part, some in zip(out.split(rows), left.split(rows), strict=True):
            for a, b in zip(some.T, right.T, strict=True):
                gap = (a[:, None] - b).div_(ADDITIVE_WIDTH).square_().mul_(-0.5)
                part += gap.exp_().mul_(s.additive / left.size(1))
    return out


def total(terms: Iterable[tuple[str, Tensor]]) -> Tensor:
    """The sum of the terms of a kernel, one of them in memory at a time."""
    rest = iter(terms)
    _, out = next(rest)
    for _, term in rest:
        out = out.add_(term)
    return out


def self_kernel(view: NodeRows, s: NodeSetting) -> Array:
    """The seed, shared and degree terms of ``k(u, u)`` of each node."""
    near = squares(view.near[0])
    if s.hop and len(view.near) > 1:
        near = near + s.hop * squares(view.near[1])
    return s.seed * squares(view.own) + (s.shared + s.degree) * near


def products(left: Rows, right: Rows, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """``left @ right.T`` of dense or sparse rows, in blocks where they would not fit densely.

    Where more than :data:`DENSE` of the entries of ``left`` are there, dense products of its blocks are faster.
    """
    if not is_sparse(left):
        right = right.toarray() if is_sparse(right) else right
        return dense(left, dtype, device) @ dense(right, dtype, device).T
    right = sparse.csr_array(right)
    if _multiplications(left, right) < 2e7:
        return dense((left @ right.T).toarray(), dtype, device)
    step = max(1, ENTRIES // max(1, right.shape[1]))
    columns = (_dense_block(right, i, step, dtype, device).T for i in range(0, right.shape[0], step))
    if left.nnz <= DENSE * left.shape[0] * left.shape[1]:
        a = to_torch(left, dtype).to(device)
        return torch.cat([a @ column for column in columns], 1)
    out = torch.empty(left.shape[0], right.shape[0], dtype=dtype, device=device)
    for place, column in zip(out.split(step, 1), columns, strict=True):
        for i in range(0, left.shape[0], step):
            place[i : i + step] = _dense_block(left, i, step, dtype, device) @ column
    return out


def dense(array: Array, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """An array as a tensor."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device, dtype)


def _dense_block(rows: Rows, start: int, count: int, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """Some of the rows of a CSR array; in the precision of the result before they are dense."""
    block = rows[start : start + count]
    block.data = torch.from_numpy(block.data).to(dtype).numpy()
    return dense(block.toarray(), dtype, device)


def _multiplications(left: Rows, right: Rows) -> float:
    """What the product of a sparse ``left`` and a sparse ``right.T`` takes."""
    entries = [np.bincount(block.indices, minlength=block.shape[1]).astype(np.float64) for block in (left, right)]
    return float(entries[0] @ entries[1])


def squares(rows: Rows) -> Array:
    """The squared length of each row."""
    return np.asarray(rows.power(2).sum(axis=1)) if is_sparse(rows) else np.square(rows).sum(axis=1)


class NodeInputs:
    """Preprocessing of nodes, learned from the training graph (from no label) and applied to any graph.

    Attributes (``data.x``) by their :func:`~demonet.features.attributes.matrix_kind`: words become tf-idf; numbers are
    standardised, with a column of ones beside a node's own; node labels stay as they are; without attributes, 12
    radial functions of log(1 + degree) take their place. All rows are brought to unit length, and so is the mean over a
    node's neighbours.

    Structural descriptors: log-degree; the mean, deviation, minimum and maximum of the neighbours'; means over two and
    three hops; the size of the second hop; clustering coefficient. Each is replaced by its rank among training nodes.

    Args:
        hops: 1 or 2. The second hop and triangles are left out where they would cost too much.
    """

    def __init__(self, hops: int = 2) -> None:
        self.hops = hops
        self.info: dict[str, Any] = {}
        self.arrays: dict[str, Array] = {}

    def fit(self, data: Data) -> Self:
        """Learn from the training graph."""
        _check(data)
        adjacency, degree = adjacency_of(data, dtype=np.float64), degree_of(data).numpy()
        kind = "degree" if data.x is None or data.x.size(1) == 0 else matrix_kind([data])
        self.info = {"hops": self.hops, "kind": kind, "columns": 0 if data.x is None else int(data.x.size(1))}
        self.info["max_degree"] = int(degree.max(initial=1))
        walks = float((degree.astype(np.float64) ** 2).sum())
        self.info["triangles"] = walks <= MAX_PRODUCTS
        if kind in ("counts", "weights"):
            self.arrays["idf"] = document_weights(to_rows(data.x), kind)
        elif self.info["kind"] == "numbers":
            x = to_rows(data.x)
            x = x.toarray() if is_sparse(x) else x
            deviation = x.std(axis=0)
            self.arrays |= {"mean": x.mean(axis=0), "scale": np.where(deviation > 0, deviation, 1.0)}
        own = self._own(data, degree)
        near = normalize(adjacency @ own)
        size = float(near.nnz if is_sparse(near) else near.size) / max(1, len(degree)) * adjacency.nnz
        if size > MAX_PRODUCTS:
            self.info["hops"] = 1
        for i, column in enumerate(self._descriptors(data, adjacency, degree).T):
            self.arrays[f"rank{i}"] = np.stack(ranks(column))
        return self

    def transform(self, data: Data) -> NodeRows:
        """The inputs of every node of a graph."""
        _check(data)
        if data.x is not None and self.info["columns"] and data.x.size(1) != self.info["columns"]:
            raise DemonetError(f"a graph with {data.x.size(1)} attributes, where training had {self.info['columns']}")
        if (data.x is None) != (self.info["columns"] == 0):
            raise DemonetError("attributes in training or in this graph, but not in both", hint="give x to both")
        adjacency, degree = adjacency_of(data, dtype=np.float64), degree_of(data).numpy()
        own = self._own(data, degree)
        near = [normalize(adjacency @ own)]
        if self.info["kind"] == "numbers":  # a column of ones: unit length would lose how large the numbers are
            own = normalize(np.column_stack([own, np.ones(len(own))]))
        if self.info["hops"] > 1:
            near.append(normalize(adjacency @ near[0]))
        descriptors = self._descriptors(data, adjacency, degree)
        known = [self.arrays[f"rank{i}"] for i in range(descriptors.shape[1])]
        return NodeRows(own, tuple(near), degree, degree, ranked(descriptors, known))

    def _own(self, data: Data, degree: Array) -> Rows:
        kind = self.info["kind"]
        if kind == "degree":
            return normalize(radial(np.log1p(degree), np.log1p(self.info["max_degree"])))
        x = to_rows(data.x)
        if kind == "numbers":
            x = x.toarray() if is_sparse(x) else x
            return (x - self.arrays["mean"]) / (self.arrays["scale"] * math.sqrt(x.shape[1]))
        return term_rows(x, self.arrays["idf"], kind) if kind in ("counts", "weights") else normalize(x)

    def _descriptors(self, data: Data, adjacency: sparse.csr_array, degree: Array) -> Array:
        names = DESCRIPTORS if self.info["triangles"] else DESCRIPTORS[:-1]

        def make() -> Array:
            return settled(GivenSurroundings(adjacency, degree).columns(names))

        found = _LAST.get([data.edge_index, data.get("edge_weight")], make, facts=(len(degree), names))
        assert found is not None
        return found

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that was learned: a part for JSON and a part for safetensors."""
        return dict(self.info), {name: torch.from_numpy(np.asarray(array)) for name, array in self.arrays.items()}

    @classmethod
    def from_state(cls, info: Mapping[str, Any], arrays: Mapping[str, Tensor]) -> Self:
        """The fitted inputs that gave this state."""
        inputs = cls(info["hops"])
        inputs.info, inputs.arrays = dict(info), {name: array.numpy() for name, array in arrays.items()}
        return inputs


def _check(data: Data) -> None:
    check_edge_index(data.edge_index, int(data.num_nodes))
    if data.x is not None:
        check_features(data.x, int(data.num_nodes))


def ranks(column: Array) -> tuple[Array, Array]:
    """Distinct values, at most `QUANTILES`, and the share of training nodes below each, ties counted half."""
    value, count = np.unique(column, return_counts=True)
    rank = (np.cumsum(count) - count / 2) / len(column)
    kept = np.unique(np.linspace(0, len(value) - 1, min(QUANTILES, len(value))).round().astype(int))
    return value[kept], rank[kept]


def ranked(rows: Array, known: Sequence[Array]) -> Array:
    """Rows with each column replaced by its rank among those of training, of variance about one."""
    columns = [np.interp(column, *rank) for column, rank in zip(rows.T, known, strict=True)]
    return math.sqrt(12) * (np.stack(columns, 1) - 0.5)
