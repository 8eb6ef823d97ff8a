"""The report room: a run or a table as one page that people look at.

``page.py`` has the page, its sections and the one writer; ``figures.py`` the figures; ``cells.py`` what stands in
tables; ``palette.py`` the colours.
"""
