"""The ledger: a database in which every run behind a table or figure is one row, made once and resumable.

- :mod:`~demonet.experiments.ledger.job`: what a run is (cell, seed), its result, and the stamp of code and data.
- :mod:`~demonet.experiments.ledger.store`: :class:`~demonet.experiments.ledger.store.Ledger`, which claims, records
  and returns runs; its SQLite file is described in ``schema.py``, its Parquet export in ``parquet.py``, and how a
  process that claimed a run is recognised in ``owner.py``.
- :mod:`~demonet.experiments.ledger.work`: :func:`~demonet.experiments.ledger.work.work`, which performs the runs that
  are missing, in local processes or on a Ray cluster (``engines.py``).
"""
