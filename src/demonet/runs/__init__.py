"""One person's problem, start to end: a graph in a file comes in, a folder with all that was learned comes out."""
