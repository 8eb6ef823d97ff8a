"""The largest graph on which one GPU trains with all nodes at once: 64 features, eight directed edges a node.

    PYTHONPATH=src python benchmarks/gpu_largest.py --out benchmarks/results [--nodes 10_000_000 25_000_000 ...]

Edges are drawn and sorted on the GPU. The network is a user's module: two ``DEMOConv`` of width 64 with ReLU, a linear
layer, cross-entropy over all nodes, Adam. A size that does not fit is a row without a time.
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path
from typing import Any

import tables
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from demonet import DegreeLayout, DegreeTasks, DEMOConv

FEATURES, CLASSES, EDGES, EPOCHS = 64, 16, 8, 3
LAYER = {"scheme": "weight", "aggr": "mean", "combine": "add", "bias": False, "act": "relu"}


class Network(nn.Module):
    """What a user would write."""

    def __init__(self, tasks: DegreeTasks) -> None:
        super().__init__()
        self.first = DEMOConv(FEATURES, FEATURES, tasks, **LAYER)
        self.second = DEMOConv(FEATURES, FEATURES, tasks, **LAYER)
        self.head = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: Tensor, layout: DegreeLayout) -> Tensor:
        """Scores."""
        return self.head(self.second(self.first(x, layout), layout))


def measure(nodes: int, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Milliseconds an epoch and peak memory."""
    on_gpu = device.type == "cuda"
    wait = torch.cuda.synchronize if on_gpu else (lambda: None)
    generator = torch.Generator(device).manual_seed(0)
    row: dict[str, Any] = {"nodes": nodes, "directed_edges": nodes * EDGES, "dtype": str(dtype)[6:]}
    try:
        edges = torch.randint(nodes, (2, nodes * EDGES), device=device, generator=generator)
        start = time.perf_counter()
        layout = DegreeLayout.from_edge_index(edges, nodes)
        wait()
        row["sort_s"] = round(time.perf_counter() - start, 2)
        del edges
        x = torch.randn(nodes, FEATURES, device=device, dtype=dtype, generator=generator)
        y = torch.randint(CLASSES, (nodes,), device=device, generator=generator)
        model = Network(DegreeTasks.exact(layout.degrees)).to(device, dtype)
        layout = layout.sorted()  # rows are in degree order, as after ToDegreeLayout
        optimizer = torch.optim.Adam(model.parameters(), fused=on_gpu)
        times = []
        for _ in range(EPOCHS):
            start = time.perf_counter()
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x, layout), y)
            loss.backward()
            optimizer.step()
            wait()
            times.append(time.perf_counter() - start)
        row |= {"ms": round(1000 * sorted(times)[EPOCHS // 2], 1), "loss": round(float(loss.detach()), 4)}
    except torch.cuda.OutOfMemoryError:
        row["ms"] = "does not fit"
    if on_gpu:
        row["peak_mib"] = torch.cuda.max_memory_allocated() // 2**20
    return row


def main() -> None:
    """Measure size after size, in bfloat16 and float32."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--nodes", type=int, nargs="+", default=[12_500_000, 25_000_000, 50_000_000, 100_000_000])
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    device, rows = torch.device(options.device), []
    for nodes in options.nodes:
        for name in options.dtypes:
            if device.type == "cuda":
                gc.collect()
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            rows.append(measure(nodes, getattr(torch, name), device) | {"command": tables.command(out=options.out)})
            print(rows[-1], flush=True)
            columns = ["nodes", "directed_edges", "dtype", "ms", "peak_mib", "sort_s", "loss", "command"]
            tables.write(options.out / "gpu_largest.csv", rows, columns)


if __name__ == "__main__":
    main()
