"""Schedules: how kernels cut a graph into equal work. Private to :mod:`demonet.ops`.

A schedule follows from a layout and is computed once, on first use (:class:`demonet.ops.graph.Graph`).
"""
