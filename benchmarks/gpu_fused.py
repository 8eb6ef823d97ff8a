"""An epoch on a GPU with and without the functions that take the place of several operators.

    PYTHONPATH=src python benchmarks/gpu_fused.py [--nodes 10000 100000 1000000] [--repeats 30]

``stack`` is all layers, head and loss of the preset ``paper`` as one function (:mod:`demonet.ops.stack`). ``refine`` is
what follows a convolution in ``default`` and ``strong`` (:mod:`demonet.ops.refine`). Without them, operators run
one by one. Every epoch is captured in a CUDA graph, as training does it; both ways take turns. A line is the median of
each and the peak memory of its first epochs.
"""

from __future__ import annotations

import argparse
import statistics
from contextlib import nullcontext
from unittest import mock

import torch
from torch import Tensor

from demonet.data.synthetic import uniform_random
from demonet.features import FeatureMap
from demonet.train.presets import preset
from demonet.train.recipes import node_model
from demonet.train.steps import WARM_UP, Captured, parameter_groups

CLASSES, DEVICE = 10, torch.device("cuda")
CASES = [("paper", "stack", "demonet.nn.models.stack_loss", None)]
CASES += [(name, "refine", "demonet.nn.after.applies", False) for name in ("default", "strong")]


def captured(name: str, nodes: int, switch: str | None, answer: object) -> tuple[Captured, float]:
    """A captured epoch, and its peak memory in MiB; what ``switch`` names is replaced and says ``answer``."""
    data, made = uniform_random(nodes, 2 * nodes, seed=0), preset(name, "nodes")
    data.y = torch.arange(nodes) % CLASSES
    data.x = torch.randn(nodes, 64, generator=torch.Generator().manual_seed(0))
    x = FeatureMap("attributes").fit_transform(data).to(DEVICE)
    model = node_model(data.to(DEVICE), x, made, seed=0).train()
    inputs, share = model.prepare(x, data.edge_index), torch.full((nodes,), 1 / nodes, device=DEVICE)
    groups = parameter_groups(model, made.train)
    optimizer = torch.optim.Adam(groups, lr=torch.tensor(0.01, device=DEVICE), fused=True, capturable=True)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(inputs, data.y, share)
        loss.backward()
        optimizer.step()
        return loss.detach()

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    epoch = Captured(step, DEVICE)
    with mock.patch(switch, return_value=answer) if switch else nullcontext():
        for _ in range(WARM_UP + 1):
            epoch()
    return epoch, (torch.cuda.max_memory_allocated() - before) / 2**20


def milliseconds(epoch: Captured) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    epoch()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    for name, what, switch, answer in CASES:
        for nodes in options.nodes:
            whole, parts = captured(name, nodes, None, None), captured(name, nodes, switch, answer)
            times = [(milliseconds(whole[0]), milliseconds(parts[0])) for _ in range(options.repeats)]
            one, other = (statistics.median(each) for each in zip(*times, strict=True))
            print(
                f"{name:8} {nodes:9,} nodes: {what} {one:.3f} ms, {whole[1]:,.0f} MiB; "
                f"without {other:.3f} ms, {parts[1]:,.0f} MiB; {other / one:.2f} times",
                flush=True,
            )


if __name__ == "__main__":
    main()
