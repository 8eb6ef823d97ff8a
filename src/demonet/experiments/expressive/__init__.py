"""Expressiveness: what layers tell apart among all small subtrees (Table 1) and graphs (Theorem 4.3)."""
