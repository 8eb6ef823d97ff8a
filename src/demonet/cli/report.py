"""``demonet report``: write the page of a finished run again."""

from __future__ import annotations

from demonet.cli.console import say
from demonet.cli.predict import RunFolder


def report(run: RunFolder) -> None:
    """Write report.html again from the folder of a finished run; the graph is not needed."""
    from demonet.report.page import write
    from demonet.report.run import run_page
    from demonet.runs import load_run
    from demonet.runs.folder import PAGE, lock_folder, update_manifest, warn_of_damage
    from demonet.schema import values_of
    from demonet.sealed import member

    with lock_folder(run):
        finished = load_run(run)
        with values_of(run, "a run of which a page can be made"):
            page = run_page(finished)
        write(page, member(run, PAGE))
        update_manifest(run, PAGE)
        warn_of_damage(run)
    say(f"Wrote {run / PAGE}.")
