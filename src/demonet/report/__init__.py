"""HTML pages and figures.

``page.py`` has the page, its sections and the writer; ``table_cells.py`` formats the cells of tables; ``chart.py`` and
its two outputs ``chart_plotly.py`` and ``chart_svg.py`` draw charts of series; ``figures.py`` builds other plotly
figures; ``palette.py`` has the colours; ``items.py`` has lists of items. Pages: ``run.py`` (a run, with ``run_*.py``),
``compare.py``, ``demo.py``, ``bench.py``, and ``paper/`` (the paper's experiments).
"""
