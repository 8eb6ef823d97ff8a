"""Public graphs that come inside packages: citations, films, listeners, software packages, words, molecules, programs.

They lie in one folder, ``$DEMONET_PUBLIC``, which these commands fill::

    pip download --no-deps graphdatascience && python -m zipfile -e graphdatascience-*.whl .    # Cora, IMDB, Last.fm
    apt-get download wordnet-base && dpkg -x wordnet-base_*.deb .                               # WordNet 3.0
    apt-cache dumpavail > packages.txt                                                          # Debian's packages
    apt-get source --download-only rdkit && tar xf rdkit_*.orig.tar.xz --wildcards '*/Docs/Book/data/*'  # solubility

``NODES`` and ``GRAPHS`` have a function for each set, from a seed to a ``Data`` or a list of them with classes in
``y``; ``split_of`` gives the split that suits a set. Of large graphs, the seed draws a part of some thousand nodes.
``python benchmarks/other_sets_default.py --public`` measures on them.
"""

from __future__ import annotations

import ast
import os
import re
import sysconfig
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from other_sets import few_labels, graph_data
from scipy import sparse
from torch_geometric.data import Data

from demonet.data.rows import to_torch
from demonet.data.splits import Split, fractions, thirds

NODES_AT_MOST, SURROUNDINGS = 3000, 300  # of a part of a large graph, and of one of the nodes it is grown from
SECTIONS = ("libs", "libdevel", "doc", "devel", "utils", "net", "science", "admin", "games", "x11", "text")


def folder() -> Path:
    """Where the packages were unpacked."""
    return Path(os.environ["DEMONET_PUBLIC"])


def _resource(name: str) -> pd.DataFrame:
    return pd.read_parquet(folder() / "graphdatascience" / "resources" / f"{name}.parquet.gzip")


def _joined(table: pd.DataFrame, ids: Iterable[int], source: str, target: str) -> np.ndarray:
    """Edges by number of row, of those whose ends both are among the ids."""
    place = {node: number for number, node in enumerate(ids)}
    pairs = [
        (place[a], place[b]) for a, b in zip(table[source], table[target], strict=True) if a in place and b in place
    ]
    return np.array(pairs).T


def _words(texts: Iterable[str], fewest: int = 3, most: int = 2000) -> torch.Tensor:
    """``[texts, words]`` how often each of the most frequent words occurs."""
    bags = [Counter(re.findall(r"[a-z]{3,}", text.lower())) for text in texts]
    number = Counter(word for bag in bags for word in bag)
    known = {word: place for place, (word, count) in enumerate(number.most_common(most)) if count >= fewest}
    entries = [(row, known[w], c) for row, bag in enumerate(bags) for w, c in bag.items() if w in known]
    row, column, value = np.array(entries).T
    return to_torch(sparse.csr_array((value.astype(float), (row, column)), shape=(len(bags), len(known))))


def cora(seed: int, attributes: bool = True) -> Data:
    """Papers by subject (7), with 1,433 words."""
    nodes, edges = _resource("cora/cora_nodes"), _resource("cora/cora_rels")
    x = to_torch(sparse.csr_array(np.stack(nodes["features"]))) if attributes else None
    joined = _joined(edges, nodes["nodeId"], "sourceNodeId", "targetNodeId")
    return graph_data(joined, nodes["subject"].to_numpy(), x)


@cache
def _films() -> tuple[pd.DataFrame, dict[int, list[int]]]:
    films = _resource("imdb/imdb_movies_with_genre")
    known = set(films["nodeId"])
    cast: dict[int, list[int]] = {}
    for name in ("imdb/imdb_acted_in", "imdb/imdb_directed_in"):
        for person, film in _resource(name)[["sourceNodeId", "targetNodeId"]].itertuples(index=False):
            if film in known:
                cast.setdefault(person, []).append(film)
    return films, cast


def films(seed: int, attributes: bool = True) -> Data:
    """Films by genre (3), joined where they share an actor or the director; words of the plot."""
    table, cast = _films()
    place = {film: number for number, film in enumerate(table["nodeId"])}
    pairs = [(place[a], place[b]) for films in cast.values() for a in films for b in films if a < b]
    x = to_torch(sparse.csr_array(np.stack(table["plot_keywords"]))) if attributes else None
    return graph_data(np.array(pairs).T, table["genre"].to_numpy(), x)


def ego_networks(seed: int) -> list[Data]:
    """For an actor: who played with them and with each other, without attributes. Which genre do they mostly play?"""
    table, cast = _films()
    genre = dict(zip(table["nodeId"], table["genre"], strict=True))
    members: dict[int, list[int]] = {}
    for person, films in cast.items():
        for film in films:
            members.setdefault(film, []).append(person)
    graphs = []
    for _, films in sorted(cast.items()):
        around = sorted({other for film in films for other in members[film]})
        if len(films) < 4:
            continue
        place = {other: number for number, other in enumerate(around)}
        pairs = {
            (place[a], place[b])
            for other in around
            for film in cast[other]
            for a in members[film]
            for b in members[film]
            if a in place and b in place and a < b
        }
        label = Counter(genre[film] for film in films).most_common(1)[0][0]
        graphs.append(graph_data(np.array(sorted(pairs)).T.reshape(2, -1), np.zeros(len(around), int)))
        graphs[-1].y = torch.tensor([label])
    return graphs


def listeners(seed: int) -> Data:
    """Last.fm's users, joined by friendship; how often they heard each of 1,500 artists; the tag they use most (8)."""
    tags = _resource("lastfm/user_tag_artist_rels")
    frequent = [tag for tag, _ in Counter(tags["tagID"]).most_common(8)]
    of_user = (
        tags[tags["tagID"].isin(frequent)].groupby("sourceNodeId")["tagID"].agg(lambda t: t.value_counts().idxmax())
    )
    ids, y = of_user.index.to_list(), np.array([frequent.index(tag) for tag in of_user])
    heard = _resource("lastfm/user_listen_artist_rels")
    artist = {a: number for number, (a, _) in enumerate(Counter(heard["targetNodeId"]).most_common(1500))}
    place = {user: number for number, user in enumerate(ids)}
    kept = heard[heard["sourceNodeId"].isin(place) & heard["targetNodeId"].isin(artist)]
    entry = kept["weight"].astype(float), (kept["sourceNodeId"].map(place), kept["targetNodeId"].map(artist))
    friends = _joined(_resource("lastfm/user_friend_df_directed"), ids, "sourceNodeId", "targetNodeId")
    return graph_data(friends, y, to_torch(sparse.csr_array(entry, shape=(len(ids), len(artist)))))


def _around(edges: np.ndarray, n: int, seed: int, allowed: np.ndarray) -> np.ndarray:
    """The surroundings of random nodes, found breadth-first; nodes of more than 200 edges are not passed."""
    rng = np.random.default_rng(seed)
    both = np.concatenate([edges, edges[::-1]], 1)
    matrix = sparse.csr_array((np.ones(both.shape[1]), (both[0], both[1])), shape=(n, n))
    degree = np.diff(matrix.indptr)
    starts = np.flatnonzero(allowed & (degree > 0))
    found: set[int] = set()
    while len(found) < NODES_AT_MOST:
        queue, limit = deque([int(rng.choice(starts))]), len(found) + SURROUNDINGS
        while queue and len(found) < limit:
            node = queue.popleft()
            if node not in found:
                found.add(node)
                near = matrix.indices[matrix.indptr[node] : matrix.indptr[node + 1]] if degree[node] <= 200 else []
                queue.extend(int(v) for v in rng.permutation(near) if allowed[v] and v not in found)
    return np.array(sorted(found))


def _part(edges: np.ndarray, label: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some nodes, the edges between them by their number, and their classes: at most 12, of 30 nodes at least."""
    nodes = _around(edges, len(label), seed, label >= 0)
    frequent = [kind for kind, count in Counter(label[nodes].tolist()).most_common(12) if count >= 30]
    nodes = nodes[np.isin(label[nodes], frequent)]
    where = np.full(len(label), -1)
    where[nodes] = np.arange(len(nodes))
    edges = where[edges]
    return nodes, edges[:, (edges >= 0).all(0)], np.array([frequent.index(kind) for kind in label[nodes]])


@cache
def _packages() -> list[dict[str, str]]:
    found = []
    for block in (folder() / "packages.txt").read_text(encoding="utf-8").split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][\w-]*): (.*)$", block, re.MULTILINE))
        if "Package" in fields and "Section" in fields:
            found.append(fields)
    return found


def packages(seed: int, attributes: str = "words") -> Data:
    """Debian's packages by section but for programming languages', joined by dependency; words, sizes, or nothing."""
    table = _packages()
    place = {row["Package"]: number for number, row in enumerate(table)}
    pairs = []
    for number, row in enumerate(table):
        for field in ("Depends", "Pre-Depends"):
            names = re.findall(r"(?:^|, )([a-z0-9][a-z0-9+.-]+)", row.get(field, ""))
            pairs += [(number, place[name]) for name in names if name in place]
    edges = np.array(pairs).T
    label = np.array([_index(SECTIONS, row["Section"].split("/")[-1]) for row in table])
    nodes, edges, y = _part(edges, label, seed)
    rows = [table[node] for node in nodes]
    x: Any = None
    if attributes == "words":
        x = _words(row.get("Description", "") for row in rows)
    elif attributes == "numbers":
        sizes = [[float(row.get(f, 0)) for f in ("Installed-Size", "Size")] for row in rows]
        other = [[len(row["Package"]), row["Package"].count("-"), row.get("Architecture") == "all"] for row in rows]
        x = np.hstack([np.array(sizes), np.array(other, float)])
    return graph_data(edges, y, x)


def _index(known: Sequence[str], name: str) -> int:
    return known.index(name) if name in known else -1


def words(seed: int, attributes: bool = False) -> Data:
    """WordNet's nouns by topic (lexicographer file, 25), joined by every relation between them; words of the gloss."""
    kinds, gloss, pairs, place = [], [], [], {}
    text = (folder() / "usr/share/wordnet/data.noun").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith(" ")]
    for number, line in enumerate(lines):
        place[line[:8]] = number
    for number, line in enumerate(lines):
        fields = line.split(" | ")[0].split()
        kinds.append(int(fields[1]))
        gloss.append(line.split(" | ")[1])
        first = 4 + 2 * int(fields[3], 16)
        related = zip(fields[first + 2 :: 4], fields[first + 3 :: 4], strict=False)
        pairs += [(number, place[other]) for other, kind in related if kind == "n"]
    edges, label = np.array(pairs).T, np.array(kinds)
    nodes, edges, y = _part(edges, label, seed)
    return graph_data(edges, y, _words(gloss[node] for node in nodes) if attributes else None)


def molecules(seed: int) -> list[Data]:
    """Molecules by solubility in water (low, medium, high); the element of each atom."""
    found = []
    for path in sorted(folder().glob("rdkit-*/Docs/Book/data/solubility.*.sdf")):
        for block in path.read_text(encoding="utf-8").split("$$$$\n"):
            lines = block.splitlines()
            if len(lines) < 5:
                continue
            atoms, bonds = int(lines[3][:3]), int(lines[3][3:6])
            element = [line[31:34].strip() for line in lines[4 : 4 + atoms]]
            pairs = [(int(line[:3]) - 1, int(line[3:6]) - 1) for line in lines[4 + atoms : 4 + atoms + bonds]]
            level = "ABC".index(re.search(r"\((\w)\) (low|medium|high)", block).group(1))
            found.append((element, np.array(pairs).T.reshape(2, -1), level))
    return _labelled(found)


def programs(seed: int) -> list[Data]:
    """Functions of Python's library as syntax trees with the kind of each node, by the module they are from (6)."""
    modules = ["asyncio/base_events", "email/_header_value_parser", "tarfile", "_pydecimal", "statistics", "typing"]
    found = []
    for label, module in enumerate(modules):
        source = (Path(sysconfig.get_path("stdlib")) / f"{module}.py").read_text(encoding="utf-8")
        for function in ast.walk(ast.parse(source)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                kinds, pairs, todo = [], [], [(function, -1)]
                while todo:
                    node, parent = todo.pop()
                    number = len(kinds)
                    kinds.append(type(node).__name__)
                    pairs += [(parent, number)] if parent >= 0 else []
                    todo += [(child, number) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.Load)]
                if 8 <= len(kinds) <= 400:
                    found.append((kinds, np.array(pairs).T.reshape(2, -1), label))
    return _labelled(found)


def _labelled(found: list[tuple[list[str], np.ndarray, int]]) -> list[Data]:
    """Graphs whose nodes have a kind each, as one-hot rows."""
    kinds = {kind: number for number, kind in enumerate(sorted({kind for names, _, _ in found for kind in names}))}
    graphs = []
    for names, edges, label in found:
        graph = graph_data(edges, np.zeros(len(names), int), np.eye(len(kinds))[[kinds[name] for name in names]])
        graph.y = torch.tensor([label])
        graphs.append(graph)
    return graphs


NODES: dict[str, Callable[[int], Data]] = {
    "Cora": cora,
    "Cora, no words": lambda seed: cora(seed, attributes=False),
    "films": films,
    "films, no words": lambda seed: films(seed, attributes=False),
    "listeners": listeners,
    "packages": packages,
    "packages, numbers": lambda seed: packages(seed, "numbers"),
    "packages, bare": lambda seed: packages(seed, ""),
    "words": words,
    "words, glosses": lambda seed: words(seed, attributes=True),
}
GRAPHS: dict[str, Callable[[int], list[Data]]] = {
    "ego networks": ego_networks,
    "solubility": molecules,
    "programs": programs,
}


def split_of(name: str, data: Any, seed: int) -> Split:
    """Twenty labels a class for Cora, 10/20/70 for films and glosses, thirds for the rest."""
    y = data.y if isinstance(data, Data) else torch.cat([graph.y for graph in data])
    if name == "Cora":
        return few_labels(y, seed)
    if name in ("films", "words, glosses"):
        return fractions(y, (0.1, 0.2, 0.7), seed, stratified=True)
    return thirds(y, seed, stratified=True)
