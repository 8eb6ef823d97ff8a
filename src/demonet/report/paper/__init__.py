"""The paper's experiments as one page: ``page.py`` puts together what the other files make of the rows."""
