"""The runs behind the paper's tables and figures: what one run of each kind computes, their statistics, the ledger.

Kinds of runs: ``accuracy.py`` (methods from ``methods.py``), ``timing.py``, ``twins.py``, ``properties.py`` (with
``expressive/``) and ``published/`` (results of other papers). ``ledger/`` stores runs and performs those that are
missing, ``statistics.py`` compares methods over runs, ``demo.py`` is ``demonet demo``. Which runs the paper's parts
need, and how these become tables and figures, is in :mod:`demonet.report.paper`.
"""
