"""The runs behind the paper's tables and figures: what one run of each kind computes, and their statistics.

Kinds of runs: ``accuracy.py``, ``timing.py``, ``twins.py``, ``properties.py`` (with ``expressive/``) and ``published/``
(results of other papers). ``statistics.py`` compares methods over runs. :mod:`demonet_study.ledger` stores runs and
performs those that are missing. Which runs the parts need, and how these become tables and figures, is in
:mod:`demonet_study.report`.
"""
