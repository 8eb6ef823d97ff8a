"""The room opens on a machine with nothing but torch, PyG and the scientific stack; the rest is asked for when used."""

from __future__ import annotations

import subprocess
import sys

LATER = ("pooch", "pyarrow", "rich", "typer", "plotly", "platformdirs", "filelock", "pandas")
PROGRAM = f"""
import sys
for name in {LATER}:
    sys.modules[name] = None  # an import of it fails
import demonet.data, demonet.data.synthetic, demonet.data.load
from demonet.data import read_graph
from demonet.features import FeatureMap
from demonet.data.synthetic import role_graph
import networkx
data = read_graph(networkx.karate_club_graph(), labels="club")
print(FeatureMap("degree-rbf").fit_transform(data).shape)
"""


def test_imports_without_what_is_only_used_later():
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "torch.Size([34, 12])\n"
