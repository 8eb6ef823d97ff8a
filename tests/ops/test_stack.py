"""Layers, head and loss as one function, against the same made of parts, run on the CPU by Triton's interpreter."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.layers import PAPER

pytest.importorskip("triton")
if torch.cuda.is_available():
    pytest.skip("on a GPU the kernels are compiled: see test_cuda.py", allow_module_level=True)

from demonet import DegreeTasks, DemonetError, NodeDEMONet, backend
from demonet.ops import Options, Weights, aggregate, linear_cross_entropy, reference
from demonet.ops.graph import Graph
from demonet.ops.noise import Noise
from demonet.ops.stack import Stack, stack_loss, stacks

from .test_triton import SLOW, assert_near, draw, graph, seeds

WIDTHS = (5, 6, 8)  # of the input and of two layers


def parameters(layout, combine, seed, bias):
    """Seed map, matrices and bias of two layers; weight and bias of a head."""
    flat, groups = [], len(layout.degrees)
    for k, (before, after) in enumerate(pairwise(WIDTHS)):
        left = after if combine == "add" else after // 2
        right = after if combine == "add" else after - left
        flat += [draw(before, left, seed=seed + k), draw(groups, before, right, seed=seed + k + 10)]
        flat.append(draw(after, seed=seed + k + 20) if bias else None)
    flat += [draw(3, WIDTHS[-1], seed=seed + 30), draw(3, seed=seed + 31)]
    return [t if t is None else t.requires_grad_() for t in flat]


def problem(seed, *, directed, aggr, combine, activation, known, keep, bias, dropout=False):
    layout = graph(seed, directed=directed)
    n = layout.num_nodes
    x = draw(n, WIDTHS[0], seed=seed)
    target = torch.randint(0, 3, (n,), generator=torch.Generator().manual_seed(seed))
    share = torch.where(draw(n, seed=seed + 1) > 0, draw(n, seed=seed + 2).abs(), 0.0)
    first = aggregate(x, layout, aggr=aggr) if known else None
    noises = [Noise(torch.tensor([seed, k]), 0.3) for k in range(2)] if dropout else []
    stack = Stack(Graph.of(layout), target, share, first, Options(aggr, combine, activation, keep), noises)
    return stack, x, parameters(layout, combine, seed, bias)


def whole(stack, x, flat):
    return stack_loss(stack, x, [Weights(*flat[:3]), Weights(*flat[3:6])], *flat[6:])


def parts(stack, x, flat):
    h = x.double()
    for k in (0, 1):
        weights = Weights(*(None if t is None else t.double() for t in flat[3 * k : 3 * k + 3]))
        h, _ = reference.conv(h, None, weights, stack.graph, stack.options, stack.noise(k))
    return linear_cross_entropy(h, flat[6].double(), flat[7].double(), stack.target, stack.share)


def gradients(loss, flat, **options):
    return torch.autograd.grad(loss, [t for t in flat if t is not None], **options)


shapes = st.fixed_dictionaries(
    {
        "directed": st.booleans(),
        "aggr": st.sampled_from(["sum", "mean", "sqrt"]),
        "combine": st.sampled_from(["concat", "add"]),
        "activation": st.sampled_from(["elu", "relu", "none"]),
        "known": st.booleans(),
        "keep": st.booleans(),
        "bias": st.booleans(),
        "dropout": st.booleans(),
    }
)


@SLOW
@given(seed=seeds, shape=shapes)
def test_loss_and_gradients(seed, shape):
    stack, x, flat = problem(seed, **shape)
    before = x.clone(), None if stack.first is None else stack.first.clone()
    loss, wanted = whole(stack, x, flat), parts(stack, x, flat)
    assert_near(loss, wanted)
    for found, right in zip(gradients(loss, flat), gradients(wanted, flat), strict=True):
        # Sums over hubs make scores of some hundreds, whose rounding the softmax passes on to every derivative.
        torch.testing.assert_close(found, right, rtol=1e-3, atol=1e-3 * float(right.abs().max()))
    assert torch.equal(x, before[0])  # what is given stays as it was
    if stack.first is not None:
        assert torch.equal(stack.first, before[1])


PLAIN = {"directed": True, "aggr": "mean", "combine": "concat", "activation": "elu", "known": True, "bias": True}


def test_twice_through_one_loss():
    """What was written over the first time is made again."""
    stack, x, flat = problem(3, keep=True, **PLAIN)
    loss = whole(stack, x, flat)
    for first, second in zip(gradients(loss, flat, retain_graph=True), gradients(loss, flat), strict=True):
        assert torch.equal(first, second)


def test_derivative_of_the_derivative_is_refused():
    stack, x, flat = problem(4, keep=True, **PLAIN)
    with pytest.raises(DemonetError, match="cross_entropy"):
        gradients(whole(stack, x, flat), flat, create_graph=True)


def test_what_does_not_stack(override):
    _, x, flat = problem(5, keep=True, **PLAIN)
    layers, head = [Weights(*flat[:3]), Weights(*flat[3:6])], flat[6]
    assert not stacks(x, layers, head)  # main memory
    override(path="triton")
    assert stacks(x, layers, head)
    assert not stacks(x.clone().requires_grad_(), layers, head)
    assert not stacks(x[:0], layers, head)
    assert not stacks(x.double(), layers, head)
    assert not stacks(x, layers, draw(1000, WIDTHS[-1], seed=0))
    assert not stacks(x, [Weights(draw(4096, 4, seed=0), draw(1, 4096, 4, seed=0)), layers[1]], head)
    with torch.autocast("cpu", torch.bfloat16):
        assert not stacks(x, layers, head)


@pytest.mark.parametrize(("scheme", "prepared", "dropout"), [("weight", True, 0.4), ("weight", False, 0.0)])
def test_model(scheme, prepared, dropout):
    """A model's own loss goes this way on a GPU, and draws the same numbers as its scores do."""
    layout = graph(6, directed=False)
    n = layout.num_nodes
    tasks = DegreeTasks.log2(int(layout.degree.max()))
    target, share = torch.arange(n) % 3, torch.full((n,), 1 / n)
    x = draw(n, 6, seed=1)
    model = NodeDEMONet(6, 3, tasks, PAPER, scheme=scheme, hidden=8, dropout=dropout, bias=True)
    given = (model.prepare(x, layout), target, share) if prepared else (x, target, share, layout)
    with backend.override(path="triton"):
        torch.manual_seed(1)
        loss = model.loss(*given)
        torch.manual_seed(1)
        scores = model(x, layout)
    assert type(loss.grad_fn).__name__ == "_StackLossBackward"
    wanted = torch.nn.functional.cross_entropy(scores, target)
    assert_near(loss, wanted)
    ways = [torch.autograd.grad(each, list(model.parameters())) for each in (loss, wanted)]
    for found, right in zip(*ways, strict=True):
        assert_near(found, right)
