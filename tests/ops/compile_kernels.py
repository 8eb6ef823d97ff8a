"""Compile the Triton kernels for a GPU on a machine without one: called by test_compiled.py in a process of its own.

The interpreter runs every statement as Python and so accepts what the compiler does not. Here the functions that start
kernels are called with tensors in main memory, and every start compiles its kernel for compute capability 9.0 instead.
"""

from __future__ import annotations

import inspect
from unittest import mock

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from demonet.degree.layout import DegreeLayout
from demonet.ops import Noise, Options, Weights
from demonet.ops.graph import Graph
from demonet.ops.library import reversed_lists
from demonet.ops.noise import RowNoise
from demonet.ops.refine import Refine
from demonet.ops.scale import Lists, Splines
from demonet.ops.triton import cross_entropy, refine, rows
from demonet.ops.triton import operators as gpu
from demonet.ops.triton import scale as scale_kernels

TARGET = GPUTarget("cuda", 90, 32)
TYPES = {
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.int32: "i32",
    torch.int64: "i64",
}
SHARED = 232_448  # bytes of shared memory that a program may have on such a GPU
compiled: set[str] = set()


def compile_instead(kernel: JITFunction, *args, grid, warmup=False, **options) -> None:
    """In place of a start."""
    names = list(inspect.signature(kernel.fn).parameters)
    given = dict(zip(names, args, strict=False)) | {name: options[name] for name in names if name in options}
    settings = {name: value for name, value in options.items() if name not in names}
    fixed = {names[param.num] for param in kernel.params if param.is_constexpr}
    signature, constants = {}, {}
    for name in names:
        value = given[name]
        if name in fixed or value is None:
            signature[name], constants[(names.index(name),)] = "constexpr", value
        elif isinstance(value, Tensor):
            signature[name] = f"*{TYPES[value.dtype]}"
        else:
            signature[name] = "fp32" if isinstance(value, float) else "i32"
    key = f"{kernel.fn.__name__} {signature} {constants} {settings}"
    if key not in compiled:
        done = triton.compile(ASTSource(kernel, signature, constants), target=TARGET, options=settings)
        assert done.metadata.shared <= SHARED, f"{key}: {done.metadata.shared} bytes of shared memory"
        compiled.add(key)


def convolutions(
    layout: DegreeLayout, dtype: torch.dtype, noise: Noise | None, options: Options, columns: int = 20, half: int = 16
) -> None:
    """Forward and backward, with and without known sums."""
    n, groups = layout.num_nodes, layout.degrees.size(0)
    left, right = (half, half) if options.combine == "add" else (half // 2, half + half // 2)
    x = torch.zeros(n, columns, dtype=dtype)
    width = right if options.combine == "add" else left + right
    weights = Weights(x.new_zeros(columns, left), x.new_zeros(groups, columns, right), x.new_zeros(width))
    for a in (x, None) if columns == 20 else (None,):  # wide ones, for their shared memory, in the longest form alone
        out, sums = gpu.conv(x, a, weights, Graph.of(layout), options, noise)
        needs, known = (True, a is not None, True, True, True), a is not None
        given = (out, out, x, sums, weights, Graph.of(layout), options, needs)
        gpu.conv_backward(*given, known=known, noise=noise)


def refined(y: Tensor, given: Refine, noise: Noise | None) -> None:
    """What follows a convolution, forward and backward."""
    out, mean, variance = refine.refine(y, given, noise)
    refine.refine_backward(out, out, y, given, mean, variance, 2.0)


def scaled(layout: DegreeLayout, dtype: torch.dtype, noise: RowNoise | None, activation: str) -> None:
    """A convolution whose degrees scale its columns, with all and with few inputs, forward and backward."""
    n, width = layout.num_nodes, 70
    x, basis = torch.zeros(n, width, dtype=dtype), torch.zeros(n, 5, dtype=dtype)
    splines = Splines(basis, x[:5], x[:5])
    pointer, neighbours = layout.pointer, layout.neighbours
    back = reversed_lists(pointer, neighbours, n, n)
    for weight, scale in ((x[:, 0].repeat(100)[: neighbours.numel()], None), (None, x[:, :1].contiguous())):
        lists = Lists(pointer, neighbours, weight, *back[:2], weight, scale)
        for bias, own in ((x[0], x), (None, None)):
            scale_kernels.sum_and_scale(x, lists, splines, bias, own, activation, noise, keep=own is None)
            scale_kernels.scale_rows(x, splines, bias, own, activation, noise)
            scale_kernels.scale_rows_backward(x, x, x, splines, activation, noise, own=own is not None, scale=scale)


def main() -> None:
    JITFunction.run = compile_instead
    edges = torch.randint(0, 60, (2, 900), generator=torch.Generator().manual_seed(0))
    layout = DegreeLayout.from_edge_index(torch.cat([edges, torch.stack([edges[0], edges[0] * 0])], 1), 60).sorted()
    # The widest that are fused: their shared memory is known before the assembler, which takes longest on them.
    with mock.patch.object(CUDABackend, "make_cubin", return_value=b""):
        for columns, half in ((256, 32), (64, 128)):
            convolutions(layout, torch.float32, None, Options("mean", "add", "relu"), columns, half)
        y, vector = torch.zeros(60, 128), torch.zeros(128)
        refined(y, Refine(vector, vector, torch.zeros(128, 128), vector, 1e-5), None)
    key = torch.tensor([3, 4])
    convolutions(layout, torch.bfloat16, Noise(key, 0.5), Options("mean", "add", "relu"))
    convolutions(layout, torch.float32, Noise(key, 1e-12), Options("sum", "concat", "elu"))
    convolutions(layout, torch.float32, None, Options("sqrt", "concat", "none", keep=False))
    for dtype, mapped, noise in ((torch.float32, False, None), (torch.bfloat16, True, Noise(key, 0.5))):
        y, vector = torch.zeros(60, 16, dtype=dtype), torch.zeros(16, dtype=dtype)
        refined(y, Refine(vector, vector, *((y[:16], vector) if mapped else (None, None)), 1e-5), noise)
    scaled(layout, torch.float32, RowNoise(key, 0.5, layout.order, 70), "elu")
    scaled(layout, torch.bfloat16, None, "none")
    h, share, target = torch.zeros(60, 16), torch.zeros(60), torch.zeros(60, dtype=torch.long)
    cross_entropy.loss(h, h[:5], share[:5], target, share)
    for over in (True, False):
        cross_entropy.gradient(share[:1], h, h[:5], share[:5], target, share, "relu", over=over)
    gpu.dropout(h, Noise(torch.tensor([3, 4]), 0.5))
    rows.select_rows(h, target)
    gpu.degree_pool(h, target, 3, "mean")
    gpu.degree_linear(h, torch.zeros(2, 16, 8), torch.tensor([0, 30, 60]), torch.tensor([0, 1]))
    gpu.degree_outer(h, h, torch.tensor([0, 30, 60]), torch.tensor([0, 1]), 2)
    gpu.aggregate(h, layout.pointer, layout.neighbours, None, "mean", Graph.of(layout).tiles)
    print(len(compiled), *sorted({name.split()[0] for name in compiled}))


if __name__ == "__main__":
    main()
