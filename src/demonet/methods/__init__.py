"""Methods on a split with one interface: DEMO-Net, simple baselines, and the systems that it is compared with.

The compared systems that only ``demonet compare`` and the study use are in ``demonet_study.methods``.

Public:

- :func:`names` lists the methods: DEMO-Net, then the others in the order of the tables.
- :func:`get` returns the class of a name. ``get(name)().fit(data, split, seed)`` trains it. The class also carries
  its description (the docstring), ``kinds``, ``group``, ``cost``, its default settings (``defaults``) and their
  citation (``defaults.source``).
- :class:`Method` and :class:`Settings` are the base classes, :func:`register` the decorator that adds a method.

To add a method, write a module with a subclass of :class:`Method` under ``@register`` and add the name of the module
to ``_MODULES`` below. ``docs/extending/method.md`` shows each step.

Modules shared by several methods: ``base`` (interface, settings, registry), ``cost``, ``selection`` (choosing a
scikit-learn model on the validation part), ``network`` and ``layers`` (neural networks), ``kernel`` (graph kernels).
"""

from __future__ import annotations

from importlib import import_module

from demonet.errors import DemonetError
from demonet.methods.base import REGISTRY, Conditions, Method, Settings, register

__all__ = ["Conditions", "Method", "Settings", "get", "names", "register"]

# In the order of the tables; a module with several methods registers them in that order, too.
_MODULES = (
    "auto",
    "closed_form",
    "demonet",
    "simple",
    "structural",
    "attributes",
    "wl_histogram",
    "convolutional",
)
_COMPARED = "demonet_study.methods"  # registers the compared systems; imported when a name is looked up
for _module in _MODULES:  # imported now, so that the registry has this order whatever is imported next
    import_module(f"{__name__}.{_module}")


def names() -> list[str]:
    """The names of all registered methods, DEMO-Net first, the others in the order of the tables."""
    import_module(_COMPARED)
    return list(REGISTRY)


def get(name: str) -> type[Method]:
    """The method with this name."""
    if name not in REGISTRY and name not in names():
        raise DemonetError(f"unknown method {name!r}", hint=f"available: {', '.join(REGISTRY)}")
    return REGISTRY[name]
