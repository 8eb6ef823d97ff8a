"""Ten runs of one small graph, at once and one by one.

    python benchmarks/many_runs.py [--runs 10] [--epochs 40] [--out benchmarks/results/many_runs.csv]

Both train the same runs (own seed, own split, thirds) for as many epochs on one core, in turn, in one process; seconds
are medians over the repeats, data and features included. ``largest difference`` is that of the training losses of the
first epochs, which rounding alone makes. Needs the sets in $DEMONET_DATA.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from demonet.data import load
from demonet.data.splits import thirds
from demonet.train import preset, train_many, train_nodes

FIRST = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="brazil,usa")
    parser.add_argument("--presets", default="paper,authors,default")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu-time", action="store_true", help="count the process's CPU time, for a busy machine")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    clock = time.process_time if options.cpu_time else time.perf_counter
    rows = []
    for name in options.sets.split(","):
        for chosen in (preset(word, "nodes") for word in options.presets.split(",")):
            chosen = replace(chosen, train=replace(chosen.train, epochs=options.epochs, patience=options.epochs))
            data = load(name, self_loops=chosen.self_loops)
            seeds = list(range(options.runs))
            splits = [thirds(data.y, seed) for seed in seeds]
            once, single = [], []
            for _ in range(options.repeats):
                start = clock()
                many = train_many(data, splits, chosen, seeds)
                middle = clock()
                each = [train_nodes(data, s, chosen, seed=seed) for s, seed in zip(splits, seeds, strict=True)]
                once.append(middle - start)
                single.append(clock() - middle)
            losses = [torch.tensor([run.history.train_loss[:FIRST] for run in runs]) for runs in (many, each)]
            seconds = [statistics.median(times) for times in (once, single)]
            epoch = [1e3 * value / options.runs / options.epochs for value in seconds]
            difference = float((losses[0] - losses[1]).abs().max())
            rows.append([name, chosen.name, *(f"{v:.2f}" for v in (*seconds, *epoch, seconds[1] / seconds[0]))])
            rows[-1].append(f"{difference:.1e}")
            print(
                "{:7} {:8} at once {} s, one by one {} s; {} and {} ms a run's epoch; {} times faster; {}".format(
                    *rows[-1]
                )
            )
    if options.out is not None:
        with options.out.open("w", newline="") as file:
            file.write(f"# python {' '.join(sys.argv)}\n")
            writer = csv.writer(file)
            names = ["at_once_s", "one_by_one_s", "at_once_epoch_ms", "one_by_one_epoch_ms", "ratio"]
            writer.writerow(["set", "preset", *names, "largest_difference"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
