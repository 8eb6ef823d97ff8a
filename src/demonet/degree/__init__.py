"""Degrees: counting them, sorting a graph by them, and mapping them to tasks.

Public: :class:`DegreeLayout`, :class:`DegreeTasks`, :class:`OpenTasks`, :class:`AddDegreeLayout` and
:func:`count_degree`.
"""

from demonet.degree.count import count_degree
from demonet.degree.layout import AddDegreeLayout, DegreeLayout
from demonet.degree.tasks import DegreeTasks, OpenTasks

__all__ = ["AddDegreeLayout", "DegreeLayout", "DegreeTasks", "OpenTasks", "count_degree"]
