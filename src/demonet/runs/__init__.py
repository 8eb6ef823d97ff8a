"""Runs: from files to a folder with a trained model, its predictions and its metrics, and back.

Public: :func:`fit_run` with its arguments :class:`Reading`, :class:`Settings` and :class:`RunProgress`,
:func:`predict_run`, :func:`explain_run`, :func:`embed_run`, :func:`load_run` and its result :class:`Run`.
``demonet compare`` is :func:`demonet.runs.compare.compare_run`.
"""

from demonet.options import Reading, Settings
from demonet.runs.fit import fit_run
from demonet.runs.folder import load_run
from demonet.runs.inference import embed_run, explain_run, predict_run
from demonet.runs.progress import RunProgress
from demonet.runs.run import Run

__all__ = [
    "Reading",
    "Run",
    "RunProgress",
    "Settings",
    "embed_run",
    "explain_run",
    "fit_run",
    "load_run",
    "predict_run",
]
