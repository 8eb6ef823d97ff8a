"""A graph for processes to share."""

from __future__ import annotations

import torch


def random_graph(n=60, m=220, seed=0, directed=False, isolated=3):
    """A graph whose last nodes have no edge."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(n - isolated, (2, m), generator=generator)
    ends = ends[:, ends[0] != ends[1]]
    ends = ends if directed else torch.cat([ends, ends.flip(0)], 1)
    return torch.unique(ends, dim=1), n
