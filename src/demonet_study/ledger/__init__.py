"""The ledger: a database in which every run behind a table or figure is one row, made once and resumable.

- :mod:`~demonet_study.ledger.job`: what a run is (cell, seed), its result, and the stamp of code and data.
- :mod:`~demonet_study.ledger.store`: :class:`~demonet_study.ledger.store.Ledger`, which claims, records
  and returns runs; its SQLite file is described in ``schema.py``, its Parquet export in ``parquet.py``.
- :mod:`~demonet_study.ledger.work`: :func:`~demonet_study.ledger.work.work`, which performs the runs that
  are missing, in local processes or on a Ray cluster.
"""
