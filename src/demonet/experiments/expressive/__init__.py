"""What layers and networks can tell apart: all small subtrees for Table 1, all small graphs for Theorem 4.3."""
