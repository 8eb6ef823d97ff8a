"""What the options of a convolution may be, and what comes with a graph."""

from __future__ import annotations

from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError


def check_options(
    in_channels: int | tuple[int, int],
    out_channels: int,
    tasks: DegreeTasks,
    scheme: str,
    aggr: str,
    combine: str,
    dropout: float,
    hash_size: int,
    basis_size: int,
) -> None:
    """Refuse options that make no layer, naming the value."""
    if not isinstance(tasks, DegreeTasks):
        raise DemonetError(f"tasks is a {type(tasks).__name__}", hint="for example DegreeTasks.exact(degree)")
    if any(width < 1 and width != -1 for width in (in_channels if isinstance(in_channels, tuple) else [in_channels])):
        raise DemonetError(f"in_channels={in_channels}: at least 1, or -1 to read it from the first input")
    if scheme not in ("weight", "hash", "smooth"):
        raise DemonetError(f"scheme={scheme!r} is not one of 'weight', 'hash', 'smooth'")
    if aggr not in ("sum", "mean", "sqrt"):
        raise DemonetError(f"aggr={aggr!r} is not one of 'sum', 'mean', 'sqrt'")
    if combine not in ("concat", "add"):
        raise DemonetError(f"combine={combine!r} is not one of 'concat', 'add'")
    if combine == "concat" and out_channels < 2:
        raise DemonetError(f"out_channels={out_channels} cannot hold two halves", hint="use combine='add'")
    if not 0.0 <= dropout < 1.0:
        raise DemonetError(f"dropout={dropout} is not in [0, 1)")
    if hash_size < 1 or basis_size < 2:
        raise DemonetError(f"hash_size={hash_size}, basis_size={basis_size}: at least 1 and 2 are needed")


def check_layout(tasks: DegreeTasks, layout: DegreeLayout) -> None:
    """Refuse a layout that is sorted by another degree than the tasks are by."""
    if layout.by != tasks.by:
        raise DemonetError(
            f"the layout is by {layout.by!r} degree, the tasks by {tasks.by!r}",
            hint=f"build it with DegreeLayout.from_edge_index(..., by={tasks.by!r})",
        )


def check_degrees(tasks: DegreeTasks, degree: Tensor, num_nodes: int) -> None:
    """Refuse anything but a degree for each node."""
    _check_each("degrees", "node", degree, 2 if tasks.by == "pair" else 1, num_nodes)


def check_weights(edge_weight: Tensor, num_arcs: int) -> None:
    """Refuse anything but a weight for each arc."""
    _check_each("edge weights", "arc", edge_weight, 1, num_arcs)


def _check_each(name: str, what: str, values: Tensor, dim: int, count: int) -> None:
    if values.dim() != dim:
        raise DemonetError(f"{name} of shape {list(values.shape)}", hint=f"{dim}-dimensional, one for each {what}")
    if values.size(0) != count:
        raise DemonetError(f"{values.size(0)} {name} for {count} {what}s", hint=f"one for each {what}")
