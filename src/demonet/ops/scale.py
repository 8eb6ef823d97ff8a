r"""The end of a convolution whose degrees scale the columns of one matrix, as one function.

.. math:: h_v = \sigma\big((1 + B_v \Gamma) \odot y_v + B_v \beta + b + o_v\big)

:math:`B_v` are the splines of the degree of v. Dropout acts on both halves, before the bias and before :math:`o_v` is
added. One by one, these operators write and read every row some ten times;
here the rows are read once and written once, and only they and the output are kept for the derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from demonet.degree.keep import lasting
from demonet.ops import backend, cpu, reference
from demonet.ops import library as operators
from demonet.ops.graph import tiles_of
from demonet.ops.noise import RowNoise
from demonet.ops.schedule.cpu import Buffers, Part, cut_parts
from demonet.ops.schedule.gpu import Tiles


class Splines(NamedTuple):
    r"""The splines of every row and their coefficients.

    Attributes:
        basis: ``[n, splines]``, :math:`B`; a constant.
        gamma, beta: ``[splines, F]``, the coefficients of the scale and of the bias.
    """

    basis: Tensor
    gamma: Tensor
    beta: Tensor


def definition(
    y: Tensor,
    splines: Splines,
    bias: Tensor | None,
    own: Tensor | None,
    activation: str,
    noise: RowNoise | None = None,
) -> Tensor:
    """The output, in plain PyTorch."""
    basis, gamma, beta = splines
    out = torch.addcmul(torch.addmm(y, basis, beta), y, basis @ gamma)
    if noise is not None:
        left, right = noise.halves(y.size(0), y.size(1), y.dtype)
        out, own = out * right, own if own is None else own * left
    out = out if bias is None else out + bias
    return reference.activate(out if own is None else out + own, activation)


def scale_rows(
    y: Tensor,
    splines: Splines,
    bias: Tensor | None = None,
    own: Tensor | None = None,
    activation: str = "none",
    noise: RowNoise | None = None,
) -> Tensor:
    """:func:`definition`.

    Args:
        y: ``[n, F]`` rows times the matrix.
        splines: The splines of their degrees; the coefficients are cast to the dtype of the rows.
        bias: ``[F]``, or None.
        own: ``[n, F]`` what is added to every row, or None.
        activation: ``"none"``, ``"elu"`` or ``"relu"``.
        noise: Of dropout, or None.
    """
    dtype = y.dtype
    if splines.gamma.dtype != dtype or splines.basis.dtype != dtype:
        splines = Splines(*(one.to(dtype) for one in splines))
    bias, own = (one if one is None or one.dtype == dtype else one.to(dtype) for one in (bias, own))
    if y.numel() == 0 or not backend.eager(y, splines.gamma, splines.beta):
        return definition(y, splines, bias, own, activation, noise)
    out: Tensor = _ScaleRows.apply(y, *splines, bias, own, activation, noise)
    return out


class _ScaleRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        y: Tensor,
        basis: Tensor,
        gamma: Tensor,
        beta: Tensor,
        bias: Tensor | None,
        own: Tensor | None,
        activation: str,
        noise: RowNoise | None,
    ) -> Tensor:
        out: Tensor = _kernels(y).scale_rows(y, Splines(basis, gamma, beta), bias, own, activation, *_given(noise))
        ctx.activation, ctx.noise = activation, noise
        # Of what is added, the values matter only to second derivatives of the activation, which are zero but for ELU.
        ctx.save_for_backward(y, basis, gamma, beta, bias, own, None if activation == "none" else out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        y, basis, gamma, beta, bias, own, out = ctx.saved_tensors
        needs = ctx.needs_input_grad
        if torch.is_grad_enabled():  # a derivative of the derivative is asked for
            again = definition(y, Splines(basis, gamma, beta), bias, own, ctx.activation, ctx.noise)
            by_y, by_gamma, by_beta, by_bias, by_own = reference.derivatives(
                [again], [y, gamma, beta, bias, own], [grad]
            )
        else:
            by_y, by_gamma, by_beta, by_bias, by_own = _kernels(y).scale_rows_backward(
                grad, out, y, Splines(basis, gamma, beta), ctx.activation, *_given(ctx.noise), own=needs[5]
            )
        found = (by_y, None, by_gamma, by_beta, by_bias, by_own)
        return *(by if need else None for by, need in zip(found, needs, strict=False)), None, None


@dataclass(frozen=True, eq=False)
class Lists:
    """The neighbours that every row sums, in both directions; all constants.

    Attributes:
        pointer, neighbours: Where the list of each row begins, and the rows in it.
        weight: ``[m]`` the factor of every entry, or None.
        back_pointer, back_neighbours, back_weight: The same of the reversed edges.
        scale: ``[n, 1]`` the factor of every sum, or None.
        offsets: ``[groups + 1]`` where rows are so many in groups of one degree that a CPU multiplies each group by a
            matrix of its own: where these begin and end; or None.
    """

    pointer: Tensor
    neighbours: Tensor
    weight: Tensor | None
    back_pointer: Tensor
    back_neighbours: Tensor
    back_weight: Tensor | None
    scale: Tensor | None
    offsets: Tensor | None = None

    def sums(self, x: Tensor) -> Tensor:
        """The sums over neighbours."""
        a = operators._aggregate(x, self.pointer, self.neighbours, self.weight, "sum", reuse=True)
        return a if self.scale is None else a * self.scale.to(a.dtype)

    @cached_property
    def tiles(self) -> Tiles:
        """The lists as a GPU takes them."""
        return tiles_of(self.pointer)

    @cached_property
    def back_tiles(self) -> Tiles:
        """The reversed ones."""
        return tiles_of(self.back_pointer)

    @cached_property
    def _cut(self) -> dict[tuple[torch.dtype, bool], list[Part]]:
        return {}

    def parts(self, dtype: torch.dtype, *, back: bool = False) -> list[Part]:
        """The lists as a CPU takes them; with ``back`` the reversed ones."""
        if (dtype, back) not in self._cut:
            lists = (self.pointer, self.neighbours, self.weight)
            reverse = (self.back_pointer, self.back_neighbours, self.back_weight)
            with lasting():
                self._cut[dtype, back] = cut_parts(*(reverse if back else lists), dtype, self.offsets)
        return self._cut[dtype, back]

    @cached_property
    def memory(self) -> Buffers:
        """Memory for large results on a CPU, the same in every epoch."""
        return Buffers()

    def back(self, grad: Tensor) -> Tensor:
        """Their derivative: sums along the reversed edges."""
        grad = grad if self.scale is None else grad * self.scale.to(grad.dtype)
        return operators._aggregate(grad, self.back_pointer, self.back_neighbours, self.back_weight, "sum", reuse=True)


def scale_conv(
    x: Tensor,
    lists: Lists,
    matrix: Tensor,
    splines: Splines,
    bias: Tensor | None,
    own: Tensor | None,
    activation: str,
    noise: RowNoise | None = None,
    *,
    product_first: bool,
    known: bool = False,
) -> Tensor:
    r""":func:`scale_rows` of :math:`y_v = W^\top \sum_u w_{vu} x_u`: a whole convolution as one function.

    Args:
        x: ``[n, F]`` rows.
        lists: What is summed.
        matrix: ``[F, F']``, :math:`W`.
        splines, bias, own, activation, noise: As in :func:`scale_rows`, of the dtype of the rows. On a CPU, there is no
            noise.
        product_first: Whether rows are multiplied before they are summed.
        known: Whether ``x`` are the sums already, which have no derivative.
    """
    if known and backend.family(x) != "cpu":
        return scale_rows(x @ matrix, splines, bias, own, activation, noise)
    order = (product_first, known, torch.is_grad_enabled())
    out: Tensor = _ScaleConv.apply(x, matrix, *splines, bias, own, lists, activation, noise, order)
    return out


class _ScaleConv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        matrix: Tensor,
        basis: Tensor,
        gamma: Tensor,
        beta: Tensor,
        bias: Tensor | None,
        own: Tensor | None,
        lists: Lists,
        activation: str,
        noise: RowNoise | None,
        order: tuple[bool, bool, bool],
    ) -> Tensor:
        ctx.lists, ctx.activation, ctx.noise, (ctx.product_first, ctx.known, keep) = lists, activation, noise, order
        splines = Splines(basis, gamma, beta)
        y: Tensor | None
        a: Tensor | None = None
        if backend.family(x) == "cpu":
            # Sums cost less than what is read for them again, unless they are wide.
            keep = not ctx.product_first and (not ctx.needs_input_grad[0] or x.size(1) < matrix.size(1))
            options = {"product_first": ctx.product_first, "known": ctx.known, "keep": keep}
            out, y, a = cpu.scale_conv(x, lists, matrix, splines, bias, own, activation, **options)
        elif ctx.product_first:
            kernels, given = _kernels(x), (lists, splines, bias, own, activation, noise)
            out, y = kernels.sum_and_scale(x @ matrix, *given, keep=keep)
        else:
            a = lists.sums(x)
            y = a @ matrix
            out = _kernels(x).scale_rows(y, splines, bias, own, activation, noise)
        # Sums and products too, which are neither input nor output: so they end with the graph, and hooks see them.
        ctx.save_for_backward(x, matrix, basis, gamma, beta, bias, own, None if activation == "none" else out, y, a)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, matrix, basis, gamma, beta, bias, own, out, product, sums = ctx.saved_tensors
        lists, splines, needs = ctx.lists, Splines(basis, gamma, beta), ctx.needs_input_grad
        by_x: Tensor | None = None
        by_matrix: Tensor | None = None
        if torch.is_grad_enabled():  # a derivative of the derivative is asked for
            again = [
                lists.pointer,
                lists.neighbours,
                lists.weight,
                "sum",
                [lists.back_pointer, lists.back_neighbours],
                [],
            ]
            a = x if ctx.known else operators.ops.aggregate(x, *again)
            y = (a if lists.scale is None or ctx.known else a * lists.scale.to(a.dtype)) @ matrix
            h = definition(y, splines, bias, own, ctx.activation, ctx.noise)
            given = [x, matrix, gamma, beta, bias, own]
            by_x, by_matrix, by_gamma, by_beta, by_bias, by_own = reference.derivatives([h], given, [grad])
        elif backend.family(x) == "cpu":
            by_x, by_matrix, by_gamma, by_beta, by_bias, by_own = cpu.scale_conv_backward(
                grad, out, x, product, sums, lists, matrix, splines, ctx.activation, need_x=needs[0], own=needs[6]
            )
        else:
            kernels, scale = _kernels(x), lists.scale if ctx.product_first else None
            # Nobody reads the products again: their derivative is written over them, and the output is let go of.
            room = None if torch._C._autograd._get_current_graph_task_keep_graph() else product
            by_y, by_gamma, by_beta, by_bias, by_own = kernels.scale_rows_backward(
                grad, out, product, splines, ctx.activation, ctx.noise, own=needs[6], scale=scale, room=room
            )
            ctx.maybe_clear_saved_tensors()
            del out, product
            if ctx.product_first:
                reversed_lists = (lists.back_pointer, lists.back_neighbours, lists.back_weight)
                by_y = kernels.aggregate(by_y, *reversed_lists, "sum", lists.back_tiles)
                by_matrix = x.t() @ by_y if needs[1] else None
                room = room if room is not None and room.shape == x.shape else None
                by_x = torch.mm(by_y, matrix.t(), out=room) if needs[0] else None
            else:
                by_matrix = sums.t() @ by_y if needs[1] else None
                by_x = lists.back(by_y @ matrix.t()) if needs[0] else None
        found = (by_x, by_matrix, None, by_gamma, by_beta, by_bias, by_own)
        return *(by if need else None for by, need in zip(found, needs, strict=False)), None, None, None, None


def _given(noise: RowNoise | None) -> tuple[RowNoise, ...]:
    """An argument of Triton's kernels; those of a CPU have none."""
    return () if noise is None else (noise,)


def _kernels(x: Tensor) -> Any:
    """Triton's or those of a CPU."""
    if backend.family(x) != "triton":
        return cpu
    from demonet.ops.triton import scale as kernels

    return kernels
