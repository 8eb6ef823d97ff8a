"""The paper's data sets: files, checksums, URLs, licence, statistics and the paper's protocol.

Statistics are those of the simple undirected graph: directions, duplicates and self-loops dropped. Tests recompute them
from the files.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

from demonet.errors import DemonetError

_STRUC2VEC = "https://github.com/leoribeiro/struc2vec/raw/master/graph"
_AANE = "https://github.com/xhuang31/AANE_Python/raw/master"
_TU = "https://www.chrsmrrs.com/graphkerneldatasets"
_NONE = "none stated"


@dataclass(frozen=True)
class File:
    """One file: its name in the folder of its data set, its sha256 and its URL.

    ``pack`` is what the URL has: the file itself, the file compressed with gzip, or a zip archive with it.
    """

    name: str
    sha256: str
    url: str
    pack: Literal["plain", "gzip", "zip"] = "plain"


@dataclass(frozen=True)
class Statistics:
    """The content of a data set; for many graphs, ``nodes`` and ``edges`` are totals."""

    nodes: int
    edges: int
    class_counts: tuple[int, ...]
    attributes: int
    distinct_degrees: int
    max_degree: int
    isolated: int = 0
    graphs: int = 1


@dataclass(frozen=True)
class DataSet:
    """One data set of the paper.

    ``task`` is what is classified and ``protocol`` how the paper splits it. ``attributes`` in the statistics is the
    number of attributes of a node or, for many graphs, of distinct node labels.
    """

    name: str
    title: str
    folder: str
    task: Literal["nodes", "graphs"]
    protocol: Literal["thirds", "10/20/70"]
    licence: str
    statistics: Statistics
    files: tuple[File, ...]
    note: str = ""


def _network(name: str, title: str, statistics: Statistics, file: File, note: str) -> DataSet:
    return DataSet(name, title, name, "nodes", "10/20/70", _NONE, statistics, (file,), note)


def _airports(country: str, statistics: Statistics, edges: str, labels: str, note: str = "") -> DataSet:
    folder = f"{country}-airports"
    files = tuple(
        File(name, sha256, f"{_STRUC2VEC}/{name}")
        for name, sha256 in ((f"{folder}.edgelist", edges), (f"labels-{folder}.txt", labels))
    )
    title = f"{country.capitalize() if country != 'usa' else 'USA'} air traffic, classes by activity"
    return DataSet(country, title, folder, "nodes", "thirds", "MIT (repository)", statistics, files, note)


def _tu(name: str, title: str, statistics: Statistics, files: dict[str, str], licence: str, note: str = "") -> DataSet:
    url = f"{_TU}/{name}.zip"
    parts = tuple(File(f"{name}_{part}.txt", sha256, url, "zip") for part, sha256 in files.items())
    return DataSet(name, title, name, "graphs", "thirds", licence, statistics, parts, note)


_SETS = (
    _network(
        "facebook",
        "SNAP ego-Facebook, the ego networks combined",
        Statistics(4039, 88234, (), 0, 227, 1045),
        File(
            "facebook_combined.txt",
            "f41c026ed8af3cc3359f1ca5573d0605fb09ae0eefa34544b820fd8c6e2ef296",
            "https://snap.stanford.edu/data/facebook_combined.txt.gz",
            "gzip",
        ),
        "no labels in the file: classes are quartiles of the degree, a sanity check and not evidence",
    ),
    _network(
        "wiki-vote",
        "SNAP Wikipedia adminship votes",
        Statistics(7115, 100762, (), 0, 300, 1065),
        File(
            "Wiki-Vote.txt",
            "6f371ed427cc96f636580561da94c8f4ba823113da703cd491c0b0e05c6aa696",
            "https://snap.stanford.edu/data/wiki-Vote.txt.gz",
            "gzip",
        ),
        "103,689 directed edges, 2,927 pairs in both directions; classes are quartiles of the degree, as for facebook",
    ),
    _network(
        "blogcatalog",
        "BlogCatalog bloggers and the words of their blogs",
        Statistics(5196, 171743, (885, 777, 921, 858, 892, 863), 8189, 285, 769),
        File(
            "BlogCatalog.mat",
            "886e1d8dec043588247ef7188fe6459f2ba657b6b9211d73f255d28b42f06b0c",
            f"{_AANE}/BlogCatalog.mat",
        ),
        "attributes are counts, in a sparse matrix",
    ),
    _network(
        "flickr",
        "Flickr users and the tags of their photographs",
        Statistics(7575, 239738, (834, 799, 856, 801, 795, 888, 843, 876, 883), 12047, 493, 1881),
        File(
            "Flickr.mat",
            "1493f3f261395b232dd37845beae9215c0abccc9d63902a3cc0af7fd4f0972cd",
            f"{_AANE}/Flickr.mat",
        ),
        "attributes are counts, in a sparse matrix; 11 nodes have none. Not PyG's Flickr, which is another graph",
    ),
    _airports(
        "brazil",
        Statistics(131, 1003, (32, 32, 32, 35), 0, 45, 79),
        "896b7bd460ad2da9160888d99bc9099ffe8ed7de3e410833889ea393831bcaa7",
        "8f9d19f10192fbaeb91dfb46dd7eae0fef28bfe1272d41ab96a4494a0d06785f",
        "71 self-loops in the file; the paper's 1,038 edges are half the entries of a matrix that keeps them",
    ),
    _airports(
        "europe",
        Statistics(399, 5993, (99, 99, 99, 102), 0, 102, 202),
        "bd202178d0d1253c15bd3c9a22cc2a25f630244bbef9060bc30adbf0a5e130f6",
        "92bace031cc02937ac9629d6c69387458e5d5016a7dab98490fbf33e392cec4e",
        "2 self-loops in the file",
    ),
    _airports(
        "usa",
        Statistics(1190, 13599, (297, 297, 297, 299), 0, 144, 238),
        "c73fec3eef27ed6d6ef4d8dfa7fd1604b959601a38d399eeaa1f87e8d8d58fc0",
        "d4062ff3b3a67c3ae72b581bb68228433223e35d6f0b2d41844d197ad3772195",
        "ids run from 10005 to 16746, with gaps",
    ),
    _tu(
        "MUTAG",
        "Nitroaromatic compounds, mutagenic or not",
        Statistics(3371, 3721, (63, 125), 7, 4, 4, graphs=188),
        {
            "A": "d9656ca7493f3445d737c711710bb36fd432dddd1c0ea32e1d4713c86ebd28e2",
            "graph_indicator": "7d520a4d6c7961c0cdeabe076d8fe27e795b6d373485c9a2b744987e560a2056",
            "graph_labels": "a1518ea39ba3426bd42f57396b9c4baffe68e9adc718caeeab0119c6591a5f2c",
            "node_labels": "678f429965490e84dd27713017538c995fc05d1621beac910848b600015ee863",
        },
        "New BSD (repository)",
    ),
    DataSet(
        "PTC",
        "Compounds carcinogenic for male rats or not, with hydrogens: the paper's version",
        "PTC",
        "graphs",
        "thirds",
        "MIT (repository)",
        Statistics(8792, 8931, (192, 152), 19, 4, 4, graphs=344),
        (
            File(
                "PTC.txt",
                "711729eaf2a5308752aa7c11062dd99f645f978afc400909a5927051b314ec55",
                "https://github.com/muhanzhang/pytorch_DGCNN/raw/master/data/PTC/PTC.txt",
            ),
        ),
        "the molecules of PTC_MR with their hydrogens, in another order",
    ),
    _tu(
        "PTC_MR",
        "The compounds of PTC without hydrogens: the TU version",
        Statistics(4915, 5054, (192, 152), 18, 4, 4, graphs=344),
        {
            "A": "f79523ff94dfbef539e5602a8ac1931a50a2800f33fa1d30e5e31725289b5202",
            "graph_indicator": "d52754f3cbc54e29324f884b4c17200c16e06db0c499afae300b4fa1bb6d794b",
            "graph_labels": "64210accbe4c6c027535b1294e0da652b1f539667f7a2d4bf5121dcd8b00a224",
            "node_labels": "cc50d1e1c5f4c98b2100cf50c5ddd88ff28b419a9180d531046b75ce22983235",
        },
        _NONE,
        "not the set that the paper's numbers describe: see PTC",
    ),
    _tu(
        "PROTEINS",
        "Proteins, enzymes or not",
        Statistics(43471, 81044, (663, 450), 3, 17, 25, isolated=5, graphs=1113),
        {
            "A": "4c4b33e272fc95cac6d27ed6d5d12b9a852c8610e91fff59f8f0dbdd5a20df67",
            "graph_indicator": "8d4ff1e852a5c28561e9bffb44cf9490bc552b13a3b6156dd12dc7f44e9afc4a",
            "graph_labels": "c0ef9810c440775252872318d0c8adc385588e14bc4c47a2c34aa96ee3c7cdcd",
            "node_attributes": "54eef829abb37e458a5fbf3a3c581e48e5810e220463c2cd951856b9ceb08f07",
            "node_labels": "f758e8ad3d6e3c026b50833d75f6f90735b94eb3345e4243707f495ca8afea8d",
        },
        _NONE,
        "1 continuous attribute per node, in `attributes`",
    ),
    _tu(
        "ENZYMES",
        "Enzymes of the six top-level EC classes",
        Statistics(19580, 37282, (100, 100, 100, 100, 100, 100), 3, 10, 9, isolated=106, graphs=600),
        {
            "A": "5553c84f8f562f3e199dfd27192174f485e85c44c1357661098668937a739cbf",
            "graph_indicator": "95ba0fa47eba6f02e6b754a215dc66d5b49de3f45f57a128514301a8d7ed5f46",
            "graph_labels": "04743e08967e61e65cdacbb90f8df6ee53742b3d2e7b84675b85ebac70506856",
            "node_attributes": "305a8fc3b12f79fb844ef3374d6a3c8ceeb4887dd4f86bbfe37932c4c5434e7b",
            "node_labels": "8263eb9b64efa231a5886343483ccfc0342f2407014763a8f738fd51c32ce770",
        },
        "MIT (repository)",
        "18 continuous attributes per node, in `attributes`; the paper uses node labels only",
    ),
)

CATALOG: dict[str, DataSet] = {entry.name: entry for entry in _SETS}


def find(name: str) -> DataSet:
    """The data set with this name, in upper or lower case; airports also by the name of their folder."""
    for entry in _SETS:
        if name.lower() in (entry.name.lower(), entry.folder.lower()):
            return entry
    near = difflib.get_close_matches(name, CATALOG, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(CATALOG)}"
    raise DemonetError(f"no data set is called {name!r}", hint=hint)
