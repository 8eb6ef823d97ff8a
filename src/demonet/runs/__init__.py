"""One person's problem, start to end: a graph in a file comes in, a folder with all that was learned comes out."""

from demonet.runs.fit import fit_run
from demonet.runs.run import Run
from demonet.runs.settings import Reading, Settings
from demonet.runs.store import load_run
from demonet.runs.use import embed_run, predict_run

__all__ = ["Reading", "Run", "Settings", "embed_run", "fit_run", "load_run", "predict_run"]
