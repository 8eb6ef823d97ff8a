"""The layer leaves PyG as it is, and no file in the temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import torch
from torch_geometric.nn.conv import message_passing
before = message_passing.module_from_template
import demonet
demonet.transforms.ToDegreeLayout
demonet.DEMOConv(2, 4, demonet.DegreeTasks.log2(4))
assert message_passing.module_from_template is before
"""


def test_a_process_leaves_no_file(tmp_path):
    subprocess.run([sys.executable, "-c", CODE], check=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert os.listdir(tmp_path) == []
