"""Exact training on a whole graph over several processes, each of which has a part of the nodes."""
