"""Expressiveness: which small subtrees (Table 1) and graphs (Theorem 4.3) layers distinguish."""
