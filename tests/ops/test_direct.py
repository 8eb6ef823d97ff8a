"""Convolutions outside the registry: the operators' numbers, derivatives and second derivatives."""

import pytest
import torch
from tests.ops.test_cpu_conv import arguments
from tests.reference.graphs import drawn_by_seed, features

from demonet.degree import DegreeLayout
from demonet.ops import Options, Weights, backend, conv, grouped, reference

# Of the first, small degrees go together; of the second, one of them is long; the third has a large one alone.
GRAPHS = {
    "small": drawn_by_seed(60, 200, 0),
    "mixed": drawn_by_seed(600, 900, 1, undirected=False),
    "long": drawn_by_seed(300, 0, 2),
}


def layout_of(name):
    return DegreeLayout.from_edge_index(*GRAPHS[name])


def through(monkeypatch, by_registry, call, wanted):
    """The output and the derivatives, by the functions here or by the registry's operators."""
    with monkeypatch.context() as patch:
        if by_registry:
            patch.setattr(backend, "eager", lambda *tensors: False)
        out = call()
        kind = type(out.grad_fn).__name__
        assert kind.startswith("GeneratedBackwardFor" if by_registry else ("Conv", "Grouped"))
        return out, *torch.autograd.grad(out, wanted, torch.sin(out.detach()), create_graph=True)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("combine", "aggr", "activation"), [("concat", "sum", "elu"), ("add", "mean", "relu"), ("concat", "sqrt", "none")]
)
def test_as_the_operators(monkeypatch, graph, known, combine, aggr, activation):
    layout = layout_of(graph)
    x, seed, matrices, bias = arguments(layout, combine)
    a = features(x.size(0), 3, 4).requires_grad_() if known else None
    wanted = [x, seed, matrices, bias, *([a] if known else [])]
    options = Options(aggr, combine, activation)

    def call():
        return conv(x, a, Weights(seed, matrices, bias), layout, options)

    plain = call()
    first = torch.autograd.grad(plain, wanted, torch.sin(plain.detach()))
    found, expected = (through(monkeypatch, by_registry, call, wanted) for by_registry in (False, True))
    torch.testing.assert_close(plain, expected[0])
    torch.testing.assert_close((*first, *found[1:]), (*expected[1:], *expected[1:]))
    sums = [sum(gradient.square().sum() for gradient in each[1:]) for each in (found, expected)]
    second = [torch.autograd.grad(total, wanted, materialize_grads=True) for total in sums]
    torch.testing.assert_close(*second)


@pytest.mark.parametrize("keep", [True, False])
def test_sums_kept_or_taken_again_are_the_same_bits_twice(keep):
    layout = layout_of("mixed")
    x, seed, matrices, bias = arguments(layout, "concat", torch.float32)

    def run():
        out = conv(x, None, Weights(seed, matrices, bias), layout, Options(activation="elu", keep=keep))
        return out, *torch.autograd.grad(out.square().sum(), [x, seed, matrices, bias])

    assert all(torch.equal(one, other) for one, other in zip(run(), run(), strict=True))


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("large", [1, 2**14])
def test_grouped_products(monkeypatch, override, graph, large):
    override(large_matrix=large)
    layout = layout_of(graph)
    x, _, matrices, _ = arguments(layout, "concat")
    group = torch.arange(len(layout.degrees))
    found, expected = (
        through(monkeypatch, by_registry, lambda: grouped(x, matrices, layout), [x, matrices])
        for by_registry in (False, True)
    )
    torch.testing.assert_close(found[0], reference.degree_linear(x.detach(), matrices.detach(), layout.offsets, group))
    plain = torch.autograd.grad(grouped(x, matrices, layout), [x, matrices], torch.sin(found[0].detach()))
    torch.testing.assert_close((*found, *plain), (*expected, *expected[1:]))


def test_a_gradient_that_is_still_used_is_not_overwritten(override):
    override(buffer_bytes=1)
    layout = layout_of("small")
    x, _, matrices, _ = arguments(layout, "concat")
    held = torch.autograd.grad(grouped(x, matrices, layout).sum(), matrices)[0]
    before = held.clone()
    torch.autograd.grad(grouped(x, matrices, layout).square().sum(), matrices)
    assert torch.equal(held, before)


def test_who_traces_maps_or_casts_gets_the_operators():
    x = torch.zeros(2, 2)
    assert backend.direct(x, torch.nn.Parameter(x))
    seen = []
    torch.vmap(lambda row: seen.append(backend.direct(row)) or row)(x)
    torch.func.grad(lambda row: seen.append(backend.direct(row)) or row.sum())(x)
    with torch._subclasses.FakeTensorMode() as mode:
        seen.append(backend.direct(mode.from_tensor(x)))
    assert seen == [False] * 3
