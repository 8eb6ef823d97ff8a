"""Methods on a split with one interface: DEMO-Net, simple baselines, and the systems that it is compared with.

The compared systems that only ``demonet compare`` and the study use are in ``demonet_study.methods``.

Public:

- :func:`names` lists the methods: DEMO-Net, then the others in the order of the tables.
- :func:`get` returns the class of a name. ``get(name)().fit(data, split, seed)`` trains it. The class also carries
  its description (the docstring), ``kinds``, ``group``, ``cost``, its default settings (``defaults``) and their
  citation (``defaults.source``).
- :class:`Method` and :class:`Settings` are the base classes, :func:`register` the decorator that adds a method.

To add a method, write a module with a subclass of :class:`Method` under ``@register`` and add the name of the module
to ``_MODULES`` below. A subclass of :class:`Model` also becomes a candidate of the ensemble, which ``demonet fit``
fits: its :meth:`~Model.candidates` says with which settings. ``docs/extending/method.md`` shows each step.

Modules shared by several methods: ``base`` (interface, settings, registry), ``model`` (methods that are stored and
applied to other graphs), ``cost``, ``selection`` (choosing a scikit-learn model on the validation part), ``network``
and ``layers`` (neural networks), ``forest`` (trees as arrays), ``kernel_ridge``.
"""

from __future__ import annotations

from importlib import import_module

from demonet.errors import DemonetError
from demonet.methods.base import REGISTRY, Conditions, Method, Settings, register
from demonet.methods.model import Labelled, Model

__all__ = ["Conditions", "Labelled", "Method", "Model", "Settings", "every", "get", "names", "register"]

# In the order of the tables and of the candidates; a module with several methods registers them in that order, too.
_MODULES = (
    "linear",
    "closed_form",
    "demonet",
    "simple",
    "attributes",
    "kernel",
    "convolutional",
    "kernel_ridge",
    "wl_models",
    "forest",
    "boosted",
    "propagation",
    "corrected",
    "demonet_average",
)
_ENSEMBLE, _COMPARED = "demonet.ensemble.auto", "demonet_study.methods"  # register theirs when a name is looked up
for _module in _MODULES:  # imported now, so that the registry has this order whatever is imported next
    import_module(f"{__name__}.{_module}")


def every() -> list[type[Method]]:
    """All registered methods."""
    for package in (_ENSEMBLE, _COMPARED):
        import_module(package)
    return list(REGISTRY.values())


def names() -> list[str]:
    """The names of all methods of the tables, which are of classes: DEMO-Net first, the others in their order."""
    listed = [method.name for method in every() if method.in_tables and "classify" in method.tasks]
    return sorted(listed, key=lambda name: name != "demonet-auto")


def get(name: str) -> type[Method]:
    """The method with this name."""
    if name not in REGISTRY and name not in names():
        raise DemonetError(f"unknown method {name!r}", hint=f"available: {', '.join(names())}")
    return REGISTRY[name]
