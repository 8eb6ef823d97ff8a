"""Small graphs of every awkward kind."""

from __future__ import annotations

import torch
from hypothesis import strategies as st


@st.composite
def directed_graphs(draw, max_nodes=12):
    """Any edges: loops, repeated and one-way edges, isolated nodes, no edge at all."""
    n = draw(st.integers(1, max_nodes))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=4 * n))
    return torch.tensor(pairs, dtype=torch.long).view(-1, 2).t().contiguous(), n


def random_graph(n=60, m=220, seed=0, directed=False, isolated=3):
    """A graph whose last nodes have no edge."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(n - isolated, (2, m), generator=generator)
    ends = ends[:, ends[0] != ends[1]]
    ends = ends if directed else torch.cat([ends, ends.flip(0)], 1)
    return torch.unique(ends, dim=1), n
