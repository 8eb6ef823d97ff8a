"""One file for each system that the paper compares with, one interface."""
