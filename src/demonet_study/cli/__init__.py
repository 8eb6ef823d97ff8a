"""The commands ``demonet reproduce`` and ``demonet bench``, which :mod:`demonet.cli` looks up by name."""
