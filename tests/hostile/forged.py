"""Forged files of our own formats: the container and its checksums are right, and the numbers in it are not.

A checksum is no secret, so a stranger can write any value. What reads such a file gives a result or one error, and
leaves alone what is beside its folder.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
import sqlite3
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import torch
from safetensors import safe_open
from scipy import sparse
from tests.hostile.formats import outcome
from tests.hostile.mutations import mutate
from tests.hostile.sealed import Deadly, Killed, compared, ledger_rows, write_ledger
from tests.runs.files import fit, read_table, write_graphs, write_problem, write_tasks
from torch import Tensor
from torch_geometric.data import Data
from typer.main import get_command

from demonet import DEMONetClassifier, DemonetError
from demonet.cli import app
from demonet.cli.console import USAGE_ERROR
from demonet.configfile import _toml
from demonet.data import Split, read_graph
from demonet.distributed.store import Store
from demonet.ensemble import Progress as Candidates
from demonet.options import Reading
from demonet.report.page import render
from demonet.report.run import run_page
from demonet.runs import RunProgress, Settings, embed_run, fit_run, load_run, predict_run
from demonet.runs.folder import RunFolder
from demonet.runs.storing import store_graph
from demonet.schema import values_of
from demonet.sealed import _sealed
from demonet.tensorfile import _ZEROS, _header_end, _with_checksum, write_tensors
from demonet_study.ledger.job import Cell
from demonet_study.ledger.parquet import write_parquet
from demonet_study.ledger.schema import SEALED, digest_of, job_of, key, stamp_of
from demonet_study.ledger.store import Ledger

HURTFUL: list[Any] = [0, -1, 1, 2, 7, 2**31 - 1, 2**31, 2**40, 2**63, -(2**63) - 1, 10**30, 0.5, 1e308, float("nan")]
HURTFUL += [
    float("inf"),
    None,
    True,
    False,
    "",
    "x",
    "0",
    "\x1b[31m",
    "a" * 1000,
    "\ud800",
    [],
    [0],
    [[]],
    {},
    {"x": 0},
    "../outside/kept.txt",
    "../outside",
]
DTYPES = [
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.bfloat16,
]
LARGE = [-1, 1, 2, 7, 127, 2**15, 2**31 - 1, 2**40, 2**62, -(2**62)]
RARE = 90  # one of so many cases has candidates
ODD = [float("nan"), float("inf"), -float("inf"), 1e38, -1e38, 1e-38, -1.0, 0.0]


@dataclass(frozen=True)
class Forgery:
    """A file that is forged.

    Attributes:
        name: Its name.
        make: Writes the file, and what seals it, with changes by the generator; the size of the file.
        restore: Puts back what was there.
        read: What reads it.
    """

    name: str
    make: Callable[[random.Random], int]
    restore: Callable[[], object]
    read: Callable[[], object]


class Forgeries:
    """Forged files in turn, each given by its number.

    Args:
        folder: Where they are made, in a folder that becomes the folder at hand; beside it is what nobody may touch.
        seed: Of all of them.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.inside, outside = folder, folder / "inside", folder / "outside"
        self.inside.mkdir()
        (outside / "deep").mkdir(parents=True)
        for name in ("kept.txt", "model.safetensors", "deep/manifest.json", "deep/edges.csv"):
            (outside / name).write_text(name)
        (outside / "link").symlink_to("deep")
        os.chdir(self.inside)
        every = list(forgeries(self.inside))
        self.seed, self.files = seed, [one for one in every if one.name not in CANDIDATES]
        self.slow = [one for one in every if one.name in CANDIDATES]
        self.before = self._outside()

    def __call__(self, index: int) -> tuple[str, str, int]:
        """The name of the file, how reading ended, and its size."""
        often = index % RARE  # a case with candidates fits an ensemble: as long as fifty others
        one = self.files[index % len(self.files)] if often else self.slow[index // RARE % len(self.slow)]
        generator = random.Random(f"{self.seed} {index}")
        try:
            size = one.make(generator)
            found = outcome(one.read)
            assert self._outside() == self.before, "a file outside was touched"
            return one.name, found, size
        finally:
            one.restore()

    def _outside(self) -> dict[str, str]:
        """All that is beside the folder at hand: the digest of files, the end of links."""
        found = {}
        for top, folders, files in os.walk(self.folder):
            folders[:] = [name for name in folders if Path(top, name) != self.inside]
            for path in (Path(top, name) for name in (*folders, *files)):
                told = os.readlink(path) if path.is_symlink() else "folder"
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else told
        return found


def forge_value(value: Any, generator: random.Random) -> Any:
    """JSON content with one change at a random place, or of the whole of it."""
    if isinstance(value, dict) and value and generator.random() < 0.95:
        key = generator.choice(sorted(value))
        if generator.random() < 0.1:
            rest = {name: item for name, item in value.items() if name != key}
            names = [None, *(name for name in HURTFUL if isinstance(name, str))]
            return rest if (name := generator.choice(names)) is None else rest | {name: value[key]}
        return value | {key: forge_value(value[key], generator)}
    if isinstance(value, list) and value and generator.random() < 0.9:
        place = generator.randrange(len(value))
        kind = generator.randrange(8)
        if kind < 4:
            return [*value[:place], forge_value(value[place], generator), *value[place + 1 :]]
        return [value[:place], value + value[place:], value[::-1], value[:place] + value[place + 1 :]][kind - 4]
    if isinstance(value, int | float) and generator.random() < 0.4:
        return generator.choice([value + 1, value - 1, -value, value * 2, value * 1000])
    return generator.choice(HURTFUL)


def forge_tensor(value: Tensor, others: list[Tensor], generator: random.Random) -> Tensor:
    """A tensor with another entry, length, shape or type."""
    kind, flat = generator.randrange(9), value.reshape(-1).clone()
    if kind < 4 and flat.numel():
        place = generator.randrange(flat.numel())
        chosen = generator.choice(ODD if flat.is_floating_point() else [*LARGE, flat.numel(), flat.numel() + 1])
        if not flat.is_floating_point() and flat.dtype != torch.bool:
            info = torch.iinfo(flat.dtype)
            chosen = min(max(int(chosen), info.min), info.max)
        flat[place : (place + 1) if kind < 3 else None] = chosen
        return flat.reshape(value.shape)
    if kind == 4:
        return value[: generator.randrange(value.size(0) + 1)].clone() if value.dim() else flat
    if kind == 5:
        return value.flip(0).contiguous() if value.dim() else flat
    if kind == 6:
        return value.to(generator.choice(DTYPES))
    if kind == 7:
        return generator.choice(others).clone()
    return generator.choice([flat, value[None].clone(), torch.cat([flat, flat]), flat[:0], flat.new_zeros(())])


def forge_tensors(tensors: dict[str, Tensor], generator: random.Random) -> dict[str, Tensor]:
    """Tensors of which one is forged or missing."""
    name = generator.choice(sorted(tensors))
    if generator.random() < 0.05:
        return {each: tensor for each, tensor in tensors.items() if each != name}
    return tensors | {name: forge_tensor(tensors[name], list(tensors.values()), generator)}


def read_raw(path: Path) -> tuple[str, dict[str, Tensor], dict[str, Any]]:
    """Format, tensors and facts of a tensor file. The tensors are copies: the file is written over while they live."""
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (it is no dict)
        return metadata["format"], tensors, json.loads(metadata["facts"])


def resealed(raw: bytes) -> bytes:
    """Bytes of a tensor file with the checksum that they should have, if there is a header to write it to."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        old = json.loads(raw[8 : _header_end(raw)])["__metadata__"]["sha256"]
        zeroed = _with_checksum(raw, old, _ZEROS)
        return _with_checksum(zeroed, _ZEROS, hashlib.sha256(zeroed).hexdigest())
    return raw


def tensor_file(path: Path) -> Callable[[random.Random], int]:
    """Forges a tensor file: its facts, its tensors, or bytes anywhere."""
    raw, (format, tensors, facts) = path.read_bytes(), read_raw(path)

    def make(generator: random.Random) -> int:
        kind = generator.randrange(10)
        if kind == 0:
            path.write_bytes(resealed(mutate(raw, generator)))
        else:
            forged, told = tensors, facts
            for _ in range(generator.choice((1, 1, 2))):
                if kind < 5 and tensors:
                    forged = forge_tensors(forged, generator) if forged else forged
                else:
                    told = forge_value(told, generator)
            write_tensors(path, format, forged, told)
        return path.stat().st_size

    return make


def sealed_file(path: Path) -> Callable[[random.Random], int]:
    """Forges a sealed JSON file."""
    content = json.loads(path.read_bytes())
    content.pop("sha256")

    def make(generator: random.Random) -> int:
        while True:
            with suppress(ValueError, TypeError):  # not a number of JSON, or no object
                path.write_bytes(_sealed(forge_value(content, generator)))
                return path.stat().st_size

    return make


def json_file(path: Path) -> Callable[[random.Random], int]:
    """Forges a plain JSON file."""
    content = json.loads(path.read_bytes())

    def make(generator: random.Random) -> int:
        path.write_text(json.dumps(forge_value(content, generator)))
        return path.stat().st_size

    return make


def seal_of_run(run: Path, make: Callable[[random.Random], int], name: str) -> Callable[[random.Random], int]:
    """Forges a file of a run and lists it with its checksum."""
    manifest = json.loads((run / "manifest.json").read_bytes())
    manifest.pop("sha256")

    def both(generator: random.Random) -> int:
        size = make(generator)
        digest = hashlib.sha256((run / name).read_bytes()).hexdigest()
        files = {**manifest["files"], name: digest}
        (run / "manifest.json").write_bytes(_sealed({**manifest, "files": files}))
        return size

    return both


def kept(paths: list[Path]) -> Callable[[], None]:
    """Puts these files back as they are now."""
    known = {path: path.read_bytes() for path in paths}

    def restore() -> None:
        for path, raw in known.items():
            path.write_bytes(raw)

    return restore


def forgeries(folder: Path) -> Iterator[Forgery]:
    """Every file of every format of our own."""
    write_problem(folder, motifs=4)
    write_graphs(folder, count=12)
    write_tasks(folder, motifs=4)
    (folder / "other").mkdir()
    write_problem(folder / "other", motifs=9)
    yield from _runs()
    yield from _store(folder)
    yield from _unfinished()
    yield from _candidates()
    yield from _unpublished()
    yield from _comparison()
    yield _saved_data(folder)
    yield _split()
    yield _options()
    yield from _standalone()
    yield from _ledgers(folder)


RUNS: dict[str, tuple[tuple[str, ...], Settings]] = {
    "network": (("edges.csv", "labels.csv", "features.csv"), Settings(epochs=2)),
    "weights by degree": (("edges.csv", "labels.csv"), Settings(epochs=2, scheme="weight")),
    "regression": (("edges.csv", "scores.csv"), Settings(epochs=2, model="network")),
    "several labels": (("edges.csv", "tags.csv"), Settings(epochs=2, model="network")),
    "network of graphs": (("graphs.csv", "kinds.csv"), Settings(epochs=2)),
    "kernel": (("edges.csv", "labels.csv", "features.csv"), Settings(model="kernel")),
    "kernel of graphs": (("graphs.csv", "kinds.csv"), Settings(model="kernel")),
    "ensemble": (("edges.csv", "labels.csv", "features.csv"), Settings(effort="quick")),
    "ensemble of graphs": (("graphs.csv", "kinds.csv"), Settings(effort="quick")),
}


def _runs() -> Iterator[Forgery]:
    for name, (files, settings) in RUNS.items():
        run = Path(f"run of {name}")
        fit_run(*files, out=run, settings=settings)
        edges, features = files[0], files[2] if len(files) > 2 else None

        def use(run: Path = run, edges: str = edges, features: str | None = features) -> None:
            predict_run(run, edges, features)
            embed_run(run, edges, features)

        def report(run: Path = run) -> None:
            loaded = load_run(run)
            with values_of(run):  # as the command does
                render(run_page(loaded))

        parts = [("model.safetensors", tensor_file, use), ("run.safetensors", tensor_file, report)]
        if name in ("network", "ensemble", "regression", "several labels"):
            parts += [("config.json", json_file, report), ("metrics.json", json_file, report)]
            parts += [("config.json", json_file, use)]
        if name == "ensemble":  # for another graph, it tells the score that holds there
            elsewhere = partial(use, edges="other/edges.csv", features="other/features.csv")
            parts += [("metrics.json", json_file, elsewhere)]
        for file, forge, read in parts:
            restore = kept([run / file, run / "manifest.json"])
            yield Forgery(f"{name}: {file}", seal_of_run(run, forge(run / file), file), restore, read)
        if name == "network":
            yield Forgery("manifest", sealed_file(run / "manifest.json"), kept([run / "manifest.json"]), use)


def _store(folder: Path) -> Iterator[Forgery]:
    rows = len(Path("labels.csv").read_text().splitlines()) - 1
    sparse.save_npz("sparse.npz", sparse.random_array((rows, 30), density=0.1, format="csr", rng=0))
    for name, features in (("plain", "features.csv"), ("sparse", "sparse.npz")):
        path = folder / f"{name}.store"
        store_graph("edges.csv", "labels.csv", features, out=path, parts=2)
        manifest = json.loads((path / "manifest.json").read_bytes())
        manifest.pop("sha256")
        arrays = {file: torch.from_numpy(np.load(path / file)) for file in manifest["files"]}
        restore = kept([path / "manifest.json", *(path / file for file in arrays)])

        def make(generator: random.Random, path=path, manifest=manifest, arrays=arrays) -> int:
            file, content, files = generator.choice(sorted(arrays)), manifest, dict(manifest["files"])
            kind = generator.randrange(10)
            if kind == 0:
                (path / file).write_bytes(mutate((path / file).read_bytes(), generator))
            elif kind < 7:
                np.save(path / file, _array(forge_tensor(arrays[file], list(arrays.values()), generator)))
            raw = (path / file).read_bytes()
            files[file] = {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}
            content = {**manifest, "files": files}
            while True:
                with suppress(ValueError, TypeError):
                    told = forge_value(content, generator) if kind >= 7 else content
                    (path / "manifest.json").write_bytes(_sealed(told))
                    return len(raw)

        def read(path=path) -> None:
            store = Store(path)
            data = store.read().data
            for number in range(2):
                store.part(number)
            fit_run(path, out="of a store", settings=Settings(epochs=1), overwrite=True)
            assert data.num_nodes

        yield Forgery(f"{name} store", make, restore, read)


def _array(tensor: Tensor) -> Any:
    return tensor.float().numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _unfinished() -> Iterator[Forgery]:
    settings = Settings(epochs=40, cv=2)
    options = {"out": "half", "settings": settings}
    with suppress(Killed):
        fit(**options, progress=Deadly())
    again = _as_it_was("half")
    for name in ("asked.json", "split-000.json", "checkpoint-001.safetensors"):
        path = Path("half/unfinished") / name
        make = tensor_file(path) if name.endswith("safetensors") else sealed_file(path)
        yield Forgery(f"unfinished {name}", make, again, lambda: fit(**options, resume=True))


class DeadlyRefit(RunProgress):
    """A process that is killed when some candidates are fitted again."""

    def candidates(self, label: str) -> Any:
        refitted = []

        def tell(progress: Candidates) -> None:
            refitted.extend([progress.candidate.name] * (progress.stage == "refitted"))
            if len(refitted) == 2:
                raise Killed

        return nullcontext(tell)


CANDIDATES: dict[str, tuple[str, ...]] = {
    "candidates": ("edges.csv", "labels.csv", "features.csv"),
    "candidates for labels": ("edges.csv", "tags.csv"),
    "candidates of graphs": ("graphs.csv", "kinds.csv"),
}


def _candidates() -> Iterator[Forgery]:
    """Finished candidates of an ensemble whose fit was killed, of both stages."""
    for name, files in CANDIDATES.items():
        settings = Settings(effort="quick", jobs=1)
        with suppress(Killed):
            fit_run(*files, out=name, settings=settings, progress=DeadlyRefit())
        again, paths = _as_it_was(name), sorted(Path(name, "unfinished").rglob("*.*fit.safetensors"))
        assert any(".refit." in path.name for path in paths), paths
        makes = [tensor_file(path) for path in paths]

        def make(generator: random.Random, makes=makes) -> int:
            return generator.choice(makes)(generator)

        def read(files=files, name=name, settings=settings) -> None:
            fit_run(*files, out=name, settings=settings, resume=True)

        yield Forgery(name, make, again, read)


def _unpublished() -> Iterator[Forgery]:
    """A run that was killed before its files were moved to their place: its manifest says which are, and over which."""
    options: dict[str, Any] = {"out": "ready", "settings": Settings(epochs=2)}
    fit(**options)
    with mock.patch.object(RunFolder, "_move", side_effect=Killed), suppress(Killed):
        fit(**options, overwrite=True)
    make, again = sealed_file(Path("ready/unfinished/whole/manifest.json")), _as_it_was("ready")
    for way in ("resume", "overwrite"):
        yield Forgery(f"unfinished manifest, {way}", make, again, lambda way=way: fit(**options, **{way: True}))


def _as_it_was(folder: str) -> Callable[[], None]:
    """Puts a folder back as it is now."""
    shutil.copytree(folder, f"{folder} as it was")

    def again() -> None:
        shutil.rmtree(folder)
        shutil.copytree(f"{folder} as it was", folder)

    return again


def _comparison() -> Iterator[Forgery]:
    board = Path("board")
    compared(board)
    again = _as_it_was("board")
    for path in (board / "compare.json", board / "cells" / "majority-000.json"):
        yield Forgery(path.name, sealed_file(path), again, partial(compared, board))


def _saved_data(folder: Path) -> Forgery:
    read = read_graph("edges.csv", labels="labels.csv", features="features.csv")
    content = {name: read[name] for name in ("x", "y", "edge_index")}
    path = folder / "graph.pt"

    def make(generator: random.Random) -> int:
        forged = dict(content)
        if generator.random() < 0.5:
            forged["x"] = _sparse(content["x"], generator)
        else:
            forged = forge_tensors(forged, generator)
        buffer = io.BytesIO()
        torch.save(Data(**forged), buffer)
        path.write_bytes(buffer.getvalue() if generator.random() < 0.9 else mutate(buffer.getvalue(), generator))
        return path.stat().st_size

    return Forgery("saved Data", make, lambda: None, lambda: read_graph(path))


def _sparse(x: Tensor, generator: random.Random) -> Tensor:
    """Sparse attributes whose indices, pointers or shape are forged; torch does not check them unless told to."""
    size = generator.choice([tuple(x.shape), (x.size(0), 10**12), (2**40, 2), (1, 1), (x.size(0), 0)])
    others = [torch.arange(3), x]
    with torch.sparse.check_sparse_tensor_invariants(enable=False):
        if generator.random() < 0.5:
            full = x.to_sparse_coo().coalesce()
            index, values = full.indices(), full.values()
            if generator.random() < 0.8:
                index = forge_tensor(index, others, generator).long()
            with suppress(RuntimeError, IndexError):
                return torch.sparse_coo_tensor(index, values, size, check_invariants=False)
            return x
        full = x.to_sparse_csr()
        parts = [full.crow_indices(), full.col_indices(), full.values()]
        place = generator.randrange(2)
        parts[place] = forge_tensor(parts[place], others, generator).long()
        with suppress(RuntimeError, IndexError):
            return torch.sparse_csr_tensor(*parts, size, check_invariants=False)
        return x


def _split() -> Forgery:
    """A split whose hash is right."""
    fit(out="split", settings=Settings(epochs=1))
    path = Path("split.json")
    content = json.loads(Path("split/split.json").read_bytes())

    def make(generator: random.Random) -> int:
        told = forge_value(content, generator)
        with suppress(DemonetError, KeyError, TypeError, ValueError, OverflowError, RuntimeError):
            parts = {part: torch.tensor(told[part], dtype=torch.int64) for part in ("train", "val", "test")}
            told["hash"] = Split(told["name"], told["seed"], **parts).hash
        path.write_text(json.dumps(told))
        return path.stat().st_size

    def read() -> None:
        fit(out="split", settings=Settings(epochs=1, split=str(path)), overwrite=True)

    return Forgery("split.json", make, lambda: None, read)


def _options() -> Forgery:
    """The options of a run, taken as those of a command that is not performed: they may ask for days of work."""
    content, path = tomllib.loads(Path("split/run.toml").read_text()), Path("run.toml")
    group: Any = get_command(app)
    command = group.commands["fit"]

    def make(generator: random.Random) -> int:
        while True:
            with suppress(ValueError, TypeError, AttributeError):  # what TOML has no form for
                told = forge_value(content, generator)
                lines = [f"{name} = {_toml(value)}" for name, value in told.items()]
                path.write_text("\n".join(lines), encoding="utf-8", errors="replace")
                return path.stat().st_size

    def read() -> None:
        try:
            context = command.make_context("fit", ["--config", str(path)])
        except USAGE_ERROR as error:
            raise DemonetError(str(error)) from None
        given = [{field.name: context.params[field.name] for field in fields(kind)} for kind in (Reading, Settings)]
        Reading(**given[0]), Settings(**given[1])

    return Forgery("run.toml", make, lambda: None, read)


def _standalone() -> Iterator[Forgery]:
    """Models that estimators save by themselves."""
    for model in ("network", "kernel", "auto"):
        options = {"epochs": 2} if model == "network" else {"effort": "quick"} if model == "auto" else {}
        classifier = DEMONetClassifier(model=model, graph="edges.csv", **options)
        named = dict(read_table(Path("labels.csv"))[1:])
        classifier.fit(list(named), list(named.values()))
        path = Path(f"{model}.safetensors")
        classifier.save(path)

        def read(path: Path = path, nodes: tuple[str, ...] = tuple(named)) -> None:
            DEMONetClassifier.load(path, graph="edges.csv").predict_proba(list(nodes))

        yield Forgery(path.name, tensor_file(path), kept([path]), read)


def _ledgers(folder: Path) -> Iterator[Forgery]:
    """Finished runs of the study with digests that are right."""
    paths = folder / "ledger.sqlite", folder / "ledger.parquet"
    write_ledger(paths[0])
    rows, cell = ledger_rows(paths[1]), Cell("accuracy", "brazil", "gcn", split="thirds")
    restore = kept(list(paths))

    def forged(generator: random.Random) -> list[tuple[Any, ...]]:
        number, row = generator.randrange(len(rows)), list(generator.choice(rows))
        for _ in range(generator.choice((1, 1, 2))):
            place = generator.randrange(1, len(row))
            row[place] = forge_value(row[place], generator)
        with suppress(TypeError, ValueError):
            row[0] = key(job_of(row[1:]), stamp_of(row[1:]))
        return [*rows[:number], tuple(row), *rows[number + 1 :]]

    def sqlite(generator: random.Random) -> int:
        while True:
            restore()
            told = [(*row, digest_of(row)) for row in forged(generator)]
            with suppress(sqlite3.Error, OverflowError, UnicodeError), closing(sqlite3.connect(paths[0])) as connection:
                connection.execute("DELETE FROM runs")
                statement = f"INSERT INTO runs ({', '.join(SEALED)}, state) VALUES ({'?, ' * len(SEALED)}'done')"
                connection.executemany(statement, told)
                connection.commit()
                return paths[0].stat().st_size

    def parquet(generator: random.Random) -> int:
        while True:
            with suppress(pa.ArrowException, TypeError, OverflowError, UnicodeError):
                write_parquet(forged(generator), paths[1])
                return paths[1].stat().st_size

    def read(path: Path) -> None:
        fresh = path.with_name("fresh.sqlite")
        fresh.unlink(missing_ok=True)
        if path.suffix == ".sqlite":
            ledger_rows(path)
            with Ledger(path) as ledger:
                ledger.results([cell])
                ledger.seconds()
                ledger.export_runs(path.with_name("exported.parquet"))
        with Ledger(fresh) as ledger:
            ledger.import_runs(path)
            ledger.results([cell])

    for path, make in zip(paths, (sqlite, parquet), strict=True):
        yield Forgery(path.name, make, restore, lambda path=path: read(path))
