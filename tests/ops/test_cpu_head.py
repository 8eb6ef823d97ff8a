"""A linear head and its loss on CPU: the reference's numbers, for few classes and for many."""

from __future__ import annotations

import pytest
import torch
from tests.reference.graphs import features

from demonet.ops import backend, cpu, reference


@pytest.mark.parametrize("classes", [2, 3, backend.current().vector_classes])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_values_and_derivatives(classes, dtype):
    exact = [features(40, 5, 0), features(classes, 5, 1), features(1, classes, 2)[0]]
    target, share = torch.arange(40) % classes, torch.rand(40, generator=torch.Generator().manual_seed(0))
    share[::3] = 0
    inputs = [tensor.to(dtype).double().requires_grad_() for tensor in exact]
    expected = reference.linear_cross_entropy(*inputs, target, share)
    gradients = torch.autograd.grad(2 * expected, inputs)
    given = [tensor.detach().to(dtype) for tensor in inputs]
    found = cpu.linear_cross_entropy(*given, target, share)
    by = cpu.linear_cross_entropy_backward(torch.tensor(2.0).to(found.dtype), *given, target, share)
    tolerance = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 5e-2}[dtype]
    for one, other in zip([found, *by], [expected, *gradients], strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=tolerance, atol=tolerance)
