"""HTML pages and figures.

``page.py`` has the page, its sections and the writer; ``table_cells.py`` the cells of tables; ``chart.py`` charts as
data, which ``chart_plotly.py`` draws; ``figures.py`` charts that several pages have; ``palette.py`` the colours;
``items.py`` lists of items. Pages: ``run.py`` (a run, with ``run_*.py``), ``compare.py`` and ``demo.py``.
"""
