"""One hypothesis profile for all tests: no deadlines, few examples, and the same ones every time in CI.

Without a GPU, Triton interprets its kernels; it has to know before it is imported for the first time. What a shell puts
into the background is deaf to Ctrl-C, and so would be every process that a test starts in order to interrupt it.
"""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

from demonet.errors import DemonetError
from demonet.nn.weights import hashed
from demonet.ops import backend, cpu
from demonet.ops.schedule import cpu as schedule
from demonet.ops.schedule import gpu

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What `make test` leaves to `make test-all`, by the path below tests/: other processes, browsers, compilers and
# interpreters, the study of the paper, documents that are run, and the long way where a shorter test holds the same.
LONG = (
    "distributed/",
    "hostile/",
    "study/",
    "walks/",
    "cli/test_demo.py",
    "cli/test_fit.py",
    "estimators/test_onnx.py",
    "estimators/test_sklearn_checks.py",
    "methods/test_refit.py",
    "nn/test_conv_tracing.py",
    "nn/test_models_tracing.py",
    "ops/test_compiled.py",
    "ops/test_kernels.py",
    "ops/test_refine.py",
    "ops/test_stack.py",
    "ops/test_triton.py",
    "runs/test_compare.py",
    "runs/test_interruption.py",
    "train/test_checkpoint.py",
    "test_architecture_page.py",
    "test_docs.py",
    "test_examples.py",
    "test_guides.py",
)

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

settings.register_profile(
    "demonet",
    deadline=None,
    max_examples=25,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("demonet")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is long, and whatever opens a browser."""
    tests = Path(__file__).parent
    for item in items:
        below = item.path.relative_to(tests).as_posix()
        if below.startswith(LONG) or item.get_closest_marker("browser"):
            item.add_marker("long")


@pytest.fixture
def refuses():
    """Check that a call ends in a DemonetError that says all of the given words, in any order."""

    def check(call, *words: str) -> DemonetError:
        with pytest.raises(DemonetError) as caught:
            call()
        for word in words:
            assert word in str(caught.value), f"{word!r} is not in {str(caught.value)!r}"
        return caught.value

    return check


@pytest.fixture
def override(monkeypatch):
    """The backend's path, or thresholds that decide between two ways of computing, for the rest of a test."""
    with ExitStack() as stack:

        def change(path: str | None = None, **thresholds: int) -> None:
            if path is not None:
                stack.enter_context(backend.override(path=path))
            for name, value in thresholds.items():
                places = (backend, cpu, schedule, gpu, hashed)
                owner = next(module for module in places if hasattr(module, name.upper()))
                monkeypatch.setattr(owner, name.upper(), value)

        yield change


@pytest.fixture
def few_candidates(monkeypatch):
    """Ensembles of four candidates, so that documents and examples run fast."""
    from demonet.ensemble import ensemble

    every = ensemble.portfolio
    monkeypatch.setattr(ensemble, "portfolio", lambda *of: [one for one in every(*of) if "ordinal" not in one.name][:4])


def _missing(what: str) -> None:
    """Skip a browser test; fail if $DEMONET_REQUIRE_BROWSER is set."""
    (pytest.fail if os.environ.get("DEMONET_REQUIRE_BROWSER") else pytest.skip)(f"{what} is not installed")


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core, which checks a page for keyboards, screen readers and contrast."""
    found = find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        _missing("axe-playwright-python")
    return Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium."""
    path = shutil.which("chromium")
    if path is None:
        _missing("Chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, headless=True, args=ARGS)
        yield chromium
        chromium.close()
