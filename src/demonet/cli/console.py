"""What all commands share: errors and warnings as one line on stderr, progress, and completion of names."""

from __future__ import annotations

import math
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import typer

from demonet.errors import DemonetError, DemonetWarning, Hint, Spelling
from demonet.escape import visible
from demonet.options import DATASETS

if TYPE_CHECKING:
    from demonet.ensemble import Progress
    from demonet.runs import RunProgress
    from demonet.train.loop import Epoch

USAGE_ERROR: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")
FAILED, INTERRUPTED = 2, 130  # exit codes: invalid input, and the usual one after Ctrl-C
_NO_MEMORY = "error: out of memory (close other programs, or use a smaller graph, fewer --jobs or --model kernel)"
IMPORTS = 3 * 2**29  # bytes of addresses that libraries take with two threads
SECONDS = 5.0  # between two lines of progress if there is no terminal
SILENCE = 10.0  # after so many seconds without a line, one says what is being done


def spelling(app: typer.Typer, arguments: list[str]) -> Spelling:
    """How the command in ``arguments`` spells the arguments of Python functions: as its options.

    The result maps a name and a value to ``--name value``, or to None if the command has no such option.
    """
    group: Any = typer.main.get_command(app)
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    command = group.get_command(None, name)
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


def say(text: str, *, err: bool = False) -> None:
    """Print a line."""
    typer.echo(visible(text, keep="\n\t"), err=err)


def address_limit() -> float:
    """How many bytes of addresses the process may have (``ulimit -v``)."""
    if sys.platform == "win32":
        return math.inf
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return math.inf if limit == resource.RLIM_INFINITY else limit


def check_address_limit() -> None:
    """Refuse a limit below which libraries cannot be imported: some would try to start their threads for ever."""
    if (limit := address_limit()) < IMPORTS:
        problem = f"addresses are limited to {limit / 2**30:.1f} GiB, libraries take {IMPORTS / 2**30:.1f}"
        raise DemonetError(problem, hint="ulimit -v")


@contextmanager
def plain_errors(spell: Spelling) -> Iterator[None]:
    """Print expected errors as one line on stderr with exit code 2, 130 after Ctrl-C, and warnings as one line each.

    Usage errors are among them if the application runs with ``standalone_mode=False``.
    """

    def line(message: DemonetError | DemonetWarning) -> str:
        return " ".join(message.spelled(spell).splitlines())

    def fail(text: str, code: int = FAILED) -> NoReturn:
        say(" ".join(text.splitlines()), err=True)
        sys.exit(code)

    for stream in (sys.stdout, sys.stderr):  # file names need not be UTF-8, and terminals may be ASCII
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        warnings.simplefilter("always", DemonetWarning)
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        shown, said = warnings.showwarning, set[str]()

        def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if isinstance(message, DemonetWarning):
                if line(message) not in said:  # a table of labels that is one of features, too, is read twice
                    say(f"warning: {line(message)}", err=True)
                said.add(line(message))
            else:
                shown(message, category, *rest)

        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        except DemonetError as error:
            fail(f"{'' if error.file else 'error: '}{line(error)}")
        except USAGE_ERROR as error:
            if _is_help(error):
                sys.exit(FAILED)
            fail(_usage_line(error))
        except OSError as error:
            fail(f"{error.filename or 'error'}: {error.strerror or error}")
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)
        except MemoryError:
            fail(_NO_MEMORY)
        except (ImportError, SystemError) as error:
            if address_limit() < math.inf and ("failed to map" in str(error) or isinstance(error, SystemError)):
                fail(_NO_MEMORY)
            raise
        except RuntimeError as error:
            if "allocate" in str(error) or "out of memory" in str(error):  # torch has no MemoryError
                fail(_NO_MEMORY)
            if "home directory" in str(error):
                fail(f"error: {error} (set HOME)")
            raise


def _is_help(error: Any) -> bool:
    """Whether the command had no arguments; making this error has printed the help."""
    return type(error).__name__ == "NoArgsIsHelpError"  # newer versions of Typer have their own copy of Click


def _usage_line(error: Any) -> str:
    path = error.ctx.command_path if error.ctx is not None else "demonet"
    message = " ".join(error.format_message().split()).removesuffix(".")
    return f"error: {message[:1].lower()}{message[1:]} ({path} --help lists what there is)"


def wrote(out: Path, what: str) -> None:
    """Say what was written; on stderr if it was written to standard output."""
    from demonet.atomic import is_standard_output

    say(f"Wrote {out}: {what}.", err=is_standard_output(out))


def print_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table without lines, which would take room from its cells.

    All but the first column are right-aligned numbers, which a narrow terminal does not cut: it folds the names.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(visible(title)), title_justify="left", box=None, pad_edge=False)
    for place, head in enumerate(heads):
        if place:
            table.add_column(escape(visible(head)), justify="right", no_wrap=True)
        else:
            table.add_column(escape(visible(head)), overflow="fold")
    for row in rows:
        table.add_row(*(escape(visible(cell)) for cell in row))
    Console().print(table)


class Heartbeat:
    """A context manager that says every so often what is being done, if nothing else has been said.

    Args:
        seconds: Of silence, before it says so.
    """

    def __init__(self, seconds: float = SILENCE) -> None:
        self.seconds, self.what, self.left, self.counted = seconds, "reading", 0.0, ""
        self.begun = self.said = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def now(self, what: str, left: float = 0.0) -> None:
        """Something else is being done, and this was said; about ``left`` seconds more are expected, if known."""
        self.what, self.left, self.begun, self.said = what, left, time.monotonic(), time.monotonic()
        self.counted = ""

    def count(self, done: int, total: int) -> None:
        """So many of its parts are done, which tells how long the others will take."""
        self.counted, self.left = f" ({done} of {total})", (time.monotonic() - self.begun) * total / done

    def heard(self) -> None:
        """Something was said about it."""
        self.said = time.monotonic()

    def _beat(self) -> None:
        while not self._stop.wait(min(self.seconds / 4, 1.0)):
            if time.monotonic() - self.said >= self.seconds:
                passed = time.monotonic() - self.begun
                left = f", about {self.left - passed:.0f} s left in all" if self.left > passed else ""
                say(f"still {self.what}{self.counted}, {passed:.0f} s{left}", err=True)
                self.heard()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()


def console_progress(heartbeat: Heartbeat) -> RunProgress:
    """Progress of a run on stderr: a line per step and per candidate, and a progress bar while training."""
    from demonet.progress import CandidateBar, EpochBar
    from demonet.runs import RunProgress

    class ConsoleProgress(RunProgress):
        def message(self, text: str) -> None:
            spelled = text.spelled(lambda name, value: f"--{name} {value}") if isinstance(text, Hint) else text
            say(spelled or "", err=True)
            heartbeat.heard()

        def step(self, what: str, done: int = 0, total: int = 0) -> None:
            if done:
                heartbeat.count(done, total)
            else:
                heartbeat.now(what)

        def cell(self, method: str, split: int, done: int, total: int, result: str) -> None:
            say(f"{done}/{total} {method}, split {split + 1}: {result}", err=True)
            heartbeat.heard()

        @contextmanager
        def training(self, label: str, epochs: int) -> Iterator[Callable[[Epoch], None]]:
            heartbeat.now(label)
            with EpochBar(label, epochs, every=1, seconds=SECONDS) as progress:

                def on_epoch(epoch: Epoch) -> None:
                    progress(epoch)
                    heartbeat.heard()

                yield on_epoch

        @contextmanager
        def candidates(self, label: str) -> Iterator[Callable[[Progress], None]]:
            heartbeat.now(label)
            with CandidateBar(label) as bar:

                def on_candidate(progress: Progress) -> None:
                    bar(progress)
                    again = " again" if progress.stage.startswith("refit") else ""
                    heartbeat.now(f"{label} {progress.candidate.name}{again}", progress.left)

                yield on_candidate

    return ConsoleProgress()


def complete_edges(incomplete: str) -> list[str]:
    """Names of data sets and files that start with the given text, for shell completion."""
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
    return [name for name in DATASETS if name.lower().startswith(incomplete.lower())] + files
