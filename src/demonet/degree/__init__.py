"""What "degree-specific" means: a graph in degree order, and which degrees share a task."""

from demonet.degree.layout import AddDegreeLayout, DegreeLayout
from demonet.degree.tasks import DegreeTasks

__all__ = ["AddDegreeLayout", "DegreeLayout", "DegreeTasks"]
