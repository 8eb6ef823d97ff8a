"""DEMONet: the layer as one of PyTorch Geometric's basic models, such as ``GCN`` or ``GraphSAGE``."""

from __future__ import annotations

from typing import Any

from torch_geometric.nn.models.basic_gnn import BasicGNN

from demonet.nn.conv import DEMOConv


class DEMONet(BasicGNN):
    r"""Degree-specific convolutions (:class:`DEMOConv`) with the interface of :class:`torch_geometric.nn.models.GCN`.

    It takes what those models take and can stand in their place. The model of the paper, with its head and readout, is
    :class:`NodeDEMONet` or :class:`GraphDEMONet`.

    Args:
        in_channels: Number of features; -1 reads it from the first input.
        hidden_channels: Width of the hidden layers.
        num_layers: Number of convolutions.
        out_channels: Width of the output; ``hidden_channels`` if None.
        dropout: Probability with which entries are dropped after every activation.
        act: Activation, by name or as a function.
        norm: Normalisation, by name or as a module.
        jk: Jumping knowledge: None, ``"last"``, ``"cat"``, ``"max"`` or ``"lstm"``.
        **kwargs: Other arguments of :class:`torch_geometric.nn.models.GCN`, and of :class:`DEMOConv`, such as
            ``tasks`` and ``scheme``.

    >>> import torch
    >>> model = DEMONet(8, hidden_channels=16, num_layers=2, out_channels=4)
    >>> model(torch.randn(3, 8), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    torch.Size([3, 4])
    """

    supports_edge_weight = True
    supports_edge_attr = False

    def init_conv(self, in_channels: int | tuple[int, int], out_channels: int, **kwargs: Any) -> DEMOConv:
        """The convolution of the next layer; each has hash functions of its own."""
        kwargs["hash_seed"] = kwargs.get("hash_seed", 0) + len(self.convs)
        return DEMOConv(in_channels, out_channels, **kwargs)
