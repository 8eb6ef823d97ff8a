"""Take the pictures of pages that README and docs show.

    python docs/site/pictures.py [run] [tutorial] [gallery]

Fits the airports of the USA, the tables of the tutorial and those of the recipes, and takes their pages in headless
Chromium. Needs the test extras and ``chromium``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).parent.parent
IMAGES = DOCS / "images"
FIXES = ("sed -i 10d edges.csv", "sed -i s/^fumy/fumi/ labels.csv", "sed -i 39d labels.csv")  # as the tutorial does


def demonet(*arguments: str, folder: Path) -> None:
    """Run a command of the package."""
    subprocess.run([sys.executable, "-m", "demonet", *arguments], cwd=folder, check=True)


def take(page: Path, image: str, width: int, height: int, *, dark: bool = False) -> None:
    """The top of a page as a picture."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        scheme = "dark" if dark else "light"
        shown = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        shown.goto(page.as_uri())
        shown.wait_for_timeout(2500)
        shown.screenshot(path=IMAGES / image)
        browser.close()


def run(folder: Path) -> None:
    """The page of a run."""
    demonet("fit", "usa", "--out", "usa", folder=folder)
    page = folder / "usa" / "report.html"
    take(page, "run-report.png", 1200, 1500)
    take(page, "run-report-dark.png", 1200, 1500, dark=True)
    take(page, "run-report-phone.png", 390, 844)


def tutorial(folder: Path) -> None:
    """The page of the tutorial's run."""
    for name, table in re.findall(r'csv title="(\w+\.csv)"\n(.*?)```', (DOCS / "tutorial.md").read_text(), re.DOTALL):
        (folder / name).write_text("".join(line.strip() + "\n" for line in table.strip().splitlines()))
    for fix in FIXES:
        subprocess.run(fix.split(), cwd=folder, check=True)
    demonet("fit", "edges.csv", "--labels", "labels.csv", "--out", "run", "--effort", "quick", folder=folder)
    take(folder / "run" / "report.html", "tutorial-report.png", 1200, 900)


def gallery(folder: Path) -> None:
    """The pages of the recipes, and a comparison."""
    sys.path.append(str(DOCS.parent))
    from tests.pages import run_page

    run_page(DOCS / "recipes.md", folder)
    compare = ("compare", "citations.csv", "--labels", "papers.csv", "--time-limit", "60", "--out", "compared")
    demonet(*compare, folder=folder)
    for name, run in (("bank", "risk"), ("prices", "prices"), ("molecules", "molecules"), ("compare", "compared")):
        take(folder / run / "report.html", f"gallery-{name}.png", 1200, 1200)


PICTURES: dict[str, Callable[[Path], None]] = {"run": run, "tutorial": tutorial, "gallery": gallery}


def main() -> None:
    """Take the pictures that are asked for, by default all."""
    for name in sys.argv[1:] or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            PICTURES[name](Path(folder))


if __name__ == "__main__":
    main()
