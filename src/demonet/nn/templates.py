"""Generated code of PyG's layers stays in memory.

PyG writes the ``propagate`` of each layer class to a new file in the temporary folder, in each process, and leaves it
there. Here the code is compiled from memory; ``linecache`` has its source, for tracebacks and TorchScript.
"""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from torch_geometric.nn.conv import message_passing


def module_from_template(module_name: str, template_path: str, tmp_dirname: str, **values: Any) -> ModuleType:
    """The module that a template renders to; the arguments are those of PyG's function."""
    if module_name in sys.modules:
        return sys.modules[module_name]
    from jinja2 import Environment, FileSystemLoader

    folder = Environment(loader=FileSystemLoader(Path(template_path).parent))
    source = folder.get_template(Path(template_path).name).render(**values)
    module, name = ModuleType(module_name), f"<{module_name}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    module.__file__ = name
    sys.modules[module_name] = module
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def keep_in_memory() -> None:
    """Make PyG use :func:`module_from_template`, where its version has such a function."""
    if hasattr(message_passing, "module_from_template"):
        message_passing.module_from_template = module_from_template
