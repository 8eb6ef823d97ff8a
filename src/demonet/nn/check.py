"""What the options of a convolution may be."""

from __future__ import annotations

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
