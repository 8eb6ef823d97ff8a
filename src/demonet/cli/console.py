"""What all commands share: errors and warnings as one line on stderr, progress, and completion of names."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from demonet.errors import DemonetError, DemonetWarning, Hint, Spelling

if TYPE_CHECKING:
    from demonet.ensemble import Progress as Candidate
    from demonet.runs import RunProgress
    from demonet.train.loop import Epoch

FAILED, INTERRUPTED = 2, 130  # exit codes: invalid input, and the usual one after Ctrl-C
_NO_MEMORY = "error: out of memory (close other programs, or use a smaller graph, fewer --jobs or --model kernel)"
SECONDS = 5.0  # between two lines of progress if there is no terminal


def spelling(app: typer.Typer, arguments: list[str]) -> Spelling:
    """How the command in ``arguments`` spells the arguments of Python functions: as its options.

    The result maps a name and a value to ``--name value``, or to None if the command has no such option.
    """
    group: Any = typer.main.get_command(app)
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    command = group.commands.get(name)
    parameters = {} if command is None else {parameter.name: parameter for parameter in command.params}

    def spell(name: str, value: Any) -> str | None:
        parameter = parameters.get(name)
        if parameter is None:
            return None
        if parameter.param_type_name == "argument":
            return name.upper()
        if value is False:
            return parameter.secondary_opts[0] if parameter.secondary_opts else None
        return parameter.opts[0] if value is True or value is ... else f"{parameter.opts[0]} {value}"

    return spell


@contextmanager
def plain_errors(spell: Spelling) -> Iterator[None]:
    """Print expected errors as one line on stderr with exit code 2, 130 after Ctrl-C, and warnings as one line each."""

    def line(message: DemonetError | DemonetWarning) -> str:
        return " ".join(message.spelled(spell).splitlines())

    def fail(text: str, code: int = FAILED) -> NoReturn:
        typer.echo(" ".join(text.splitlines()), err=True)
        sys.exit(code)

    for stream in (sys.stdout, sys.stderr):  # file names need not be UTF-8, and terminals may be ASCII
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        warnings.simplefilter("always", DemonetWarning)
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if isinstance(message, DemonetWarning):
                typer.echo(f"warning: {line(message)}", err=True)
            else:
                shown(message, category, *rest)

        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        except DemonetError as error:
            fail(f"{'' if error.file else 'error: '}{line(error)}")
        except OSError as error:
            fail(f"{error.filename or 'error'}: {error.strerror or error}")
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)
        except MemoryError:
            fail(_NO_MEMORY)
        except RuntimeError as error:
            if "allocate" in str(error) or "out of memory" in str(error):  # torch has no MemoryError
                fail(_NO_MEMORY)
            if "home directory" in str(error):
                fail(f"error: {error} (set HOME)")
            raise


def wrote(out: Path, what: str) -> None:
    """Say what was written; on stderr if it was written to standard output."""
    from demonet.atomic import is_standard_output

    typer.echo(f"Wrote {out}: {what}.", err=is_standard_output(out))


def console_progress() -> RunProgress:
    """Progress of a run on stderr: a line per step and per candidate, and a progress bar while training."""
    from demonet.ensemble.progress import CandidateBar
    from demonet.runs import RunProgress
    from demonet.train.progress import Progress

    class ConsoleProgress(RunProgress):
        def message(self, text: str) -> None:
            spelled = text.spelled(lambda name, value: f"--{name} {value}") if isinstance(text, Hint) else text
            typer.echo(spelled, err=True)

        def training(self, label: str, epochs: int) -> AbstractContextManager[Callable[[Epoch], None]]:
            return Progress(label, epochs, every=1, seconds=SECONDS)

        def candidates(self, label: str) -> AbstractContextManager[Callable[[Candidate], None]]:
            return CandidateBar(label)

    return ConsoleProgress()


def complete_edges(incomplete: str) -> list[str]:
    """Names of data sets and files that start with the given text, for shell completion."""
    from demonet.data.catalog import CATALOG

    folder, _, start = incomplete.rpartition("/")
    try:
        entries = sorted(Path(f"{folder}/" if incomplete.startswith("/") else folder or ".").iterdir())
    except OSError:
        entries = []
    files = [
        f"{folder}/{entry.name}" if "/" in incomplete else entry.name
        for entry in entries
        if entry.name.startswith(start) and not entry.name.startswith(".")
    ]
    return [name for name in CATALOG if name.lower().startswith(incomplete.lower())] + files
