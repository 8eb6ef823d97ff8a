"""Layers leave no file in the temporary folder, and their generated code has a source."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

from demonet import DegreeTasks, DEMOConv

CODE = """
import torch
from torch_geometric.nn import GCNConv
from demonet import DEMOConv, DegreeTasks
DEMOConv(2, 4, DegreeTasks.log2(4)), GCNConv(2, 2)
"""


def test_a_process_leaves_no_file(tmp_path):
    subprocess.run([sys.executable, "-c", CODE], check=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert os.listdir(tmp_path) == []


def test_the_source_of_generated_code_is_known():
    conv = DEMOConv(2, 4, DegreeTasks.log2(4))
    assert "def propagate" in inspect.getsource(type(conv).propagate)
