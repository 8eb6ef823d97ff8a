"""Half precision ends at 65504: sums over neighbours are made in single precision, and refused where they are more."""

from __future__ import annotations

import pytest
import torch

from demonet import DegreeLayout, DegreeTasks, DEMOConv, DemonetError

N = 70_001
HUB = torch.stack([torch.arange(1, N), torch.zeros(N - 1, dtype=torch.long)])


@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
@pytest.mark.parametrize("graph", [HUB, DegreeLayout.from_edge_index(HUB, N)], ids=["edges", "layout"])
def test_a_hub_does_not_overflow_in_silence(scheme, graph):
    x = torch.ones(N, 2, dtype=torch.float16)
    with pytest.raises(DemonetError, match=r"7e\+04.*float16"):
        DEMOConv(2, 4, DegreeTasks.log2(N), scheme=scheme, aggr="sum").half()(x, graph)
    mean = DEMOConv(2, 4, DegreeTasks.log2(N), scheme=scheme, aggr="mean")
    expected = mean(x.float(), graph)[0].half()
    torch.testing.assert_close(mean.half()(x, graph)[0], expected, rtol=1e-2, atol=1e-2)
