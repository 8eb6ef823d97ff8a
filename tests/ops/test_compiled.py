"""Every Triton kernel compiles for a GPU, in every form that a convolution, a deep layer and a loss start it in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Triton's compiler for GPUs is in its Linux wheels")


def test_kernels_compile(tmp_path):
    """In a process of its own: here Triton interprets."""
    settings = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    settings["TRITON_CACHE_DIR"] = str(tmp_path)
    script = Path(__file__).with_name("compile_kernels.py")
    done = subprocess.run([sys.executable, str(script)], env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    started = {"_conv_kernel", "_weights_kernel", "_input_kernel", "_refine_kernel", "_sum_kernel", "_backward_kernel"}
    assert started <= set(done.stdout.split())
