"""The study of the paper (DEMO-Net, KDD'19): its experiments, the ledger of all runs, tables, figures and benchmarks.

It uses the library :mod:`demonet`, which does not use it. Its commands are ``demonet reproduce`` and ``demonet bench``.
"""
