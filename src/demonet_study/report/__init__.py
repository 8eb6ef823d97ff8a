"""The paper's tables, figures and claims: which runs they need, and how they become files and one page.

``parts/`` has the parts: their runs, tables, figures and text. ``files.py`` writes all files from a ledger,
``page.py`` makes the page. ``grid.py`` arranges rows in tables, ``markup.py`` writes them as Markdown and LaTeX,
``compare.py`` has comparisons that several parts show. ``claims.py`` tests the paper's claims, ``reasons.py`` explains
cells that do not match, ``names.py`` has display names.
"""
