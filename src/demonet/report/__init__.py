"""The report room: a run or a table as one page that people look at.

``page.py`` has the page, its sections and the one writer; ``figures.py`` the figures; ``cells.py`` what stands in
tables; ``palette.py`` the colours. ``run.py`` makes the page of a run, with its figures in ``run_figures.py``, what it
says about accuracy in ``run_accuracy.py``, its tables in ``run_tables.py`` and all items in ``explorer.py``.
"""
