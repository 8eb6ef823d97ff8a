"""The systems that the paper and its followers compare with, registered beside the methods of the library.

:func:`demonet.methods.get` and :func:`demonet.methods.names` import this package by its name.
"""

from __future__ import annotations

from importlib import import_module

# In the order of the tables; a module with several methods registers them in that order, too.
_NODES = ("co_training", "gin", "pna", "rolx", "struc2vec", "graphwave")
_GRAPHS = ("dcnn", "patchy_san", "diffpool", "wl")
for _module in (*_NODES, *_GRAPHS):
    import_module(f"{__name__}.{_module}")
