"""Files as offices write them, with what the command says about each: Windows-1252, German numbers, sheets, accents."""

from __future__ import annotations

import csv
import json
import random
import unicodedata
from datetime import date, timedelta
from pathlib import Path

import pytest
from openpyxl import Workbook
from sklearn.metrics import average_precision_score, roc_auc_score
from tests.walks.command import demonet

CUSTOMERS = [f"{number:05}" for number in range(1, 161)]
RISKY = set(CUSTOMERS[::8])
COLUMNS = ("--source", "Auftraggeber", "--target", "Empfänger", "--label-column", "Risiko")
FAST = ("--epochs", "3")


def german(number):
    return f"{number:_.2f}".translate(str.maketrans("_.", ".,"))


def transfers(seed):
    """Rows with a date, the payer, the payee and the amount; the risky prefer each other."""
    chosen = random.Random(seed)
    for payer in CUSTOMERS:
        for _ in range(3):
            payee = chosen.choice(sorted(RISKY) if payer in RISKY and chosen.random() < 0.6 else CUSTOMERS)
            yield date(2024, 1, 1) + timedelta(chosen.randrange(28)), payer, payee, chosen.lognormvariate(6, 1)


def write(name, rows, encoding="cp1252"):
    Path(name).write_text("".join(";".join(row) + "\r\n" for row in rows), encoding=encoding, newline="")


def write_month(suffix="", *, seed=0, extra=()):
    """Transfers and customers in the encoding, the dates and the numbers of a German office."""
    rows = [[f"{day:%d.%m.%Y}", payer, payee, german(amount)] for day, payer, payee, amount in transfers(seed)]
    write(f"Überweisungen{suffix}.csv", [["Datum", "Auftraggeber", "Empfänger", "Betrag"], *rows])
    chosen = random.Random(seed + 1)
    people = [["Kunde", "Branche", "Risiko", "Seit", "Umsatz"]]
    for customer in (*CUSTOMERS, *extra):
        known = chosen.random() < 0.8 and customer not in extra
        risk = ("hoch" if customer in RISKY else "niedrig") if known else ""
        since = date(2010, 1, 1) + timedelta(chosen.randrange(4000))
        turnover = german(chosen.lognormvariate(8 - (customer in RISKY), 1))
        people.append([customer, chosen.choice(["Bau", "Gärtnerei"]), risk, f"{since:%d.%m.%Y}", turnover])
    write(f"Kunden{suffix}.csv", [*people, people[1], people[2]])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_bank_from_files_to_next_months_ranking():
    """Columns are asked for, not guessed; what is asked for is in the message, and typing it works."""
    write_month()
    command = ["fit", "Überweisungen.csv", "--labels", "Kunden.csv", "--features", "Kunden.csv", "--out", "run"]
    code, _, err = demonet(*command)
    assert (code, "(name them: --source Auftraggeber --target Empfänger)" in err) == (2, True), err
    code, _, err = demonet(*command, *COLUMNS[:4])
    assert (code, "--label-column" in err, "Branche" in err) == (2, True, True), err
    command += [*COLUMNS, "--weight", "Betrag", "--metric", "average-precision", "--positive", "hoch"]
    code, _, err = demonet(*command, "--effort", "quick", "--time-limit", "60")
    assert code == 0, err
    lines = [line for line in err.splitlines() if line.startswith("warning: ")]
    for fact in ("Windows-1252", "dates in 'Seit'", "'Umsatz'", "'Betrag'", "2 rows that repeat another", "undirected"):
        assert any(fact in line for line in lines), fact
    assert len(set(lines)) == len(lines), "nothing is told twice"
    assert "edges are read as" in Path("run/report.html").read_text(encoding="utf-8").lower()
    with Path("run/predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["node"] for row in rows] == CUSTOMERS
    held = [row for row in rows if row["part"] == "test"]
    truth, score = [row["label"] == "hoch" for row in held], [float(row["hoch"]) for row in held]
    metrics = json.loads(Path("run/metrics.json").read_text())
    assert metrics["test_metric"] == pytest.approx(average_precision_score(truth, score))
    assert metrics["auc"] == pytest.approx(roc_auc_score(truth, score))
    write_month("-Februar", seed=7, extra=("99999",))
    month = ("predict", "run", "Überweisungen-Februar.csv", "--features", "Kunden-Februar.csv", "--rank", "hoch")
    code, _, err = demonet(*month, "--top", "20", "--excel", ",", "--out", "Rangliste.csv")
    assert code == 0, err
    data = Path("Rangliste.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    ranked = list(csv.DictReader(data.decode("utf-8-sig").splitlines(), delimiter=";"))
    scores = [float(row["hoch"].replace(",", ".")) for row in ranked]
    assert (len(ranked), scores) == (20, sorted(scores, reverse=True))
    code, _, err = demonet(*month, "--out", "alle.csv")
    assert code == 0, err
    assert ",99999," in "".join(f",{line}" for line in Path("alle.csv").read_text().splitlines()), "without an edge"


def test_ids_keep_their_form():
    ring = [f"{i:02}" if i < 10 else str(i) for i in range(30)]
    pairs = [*zip(ring, ring[1:] + ring[:1], strict=True), ("7", "12")]
    write("e.csv", [["source", "target"], *map(list, pairs)])
    write("l.csv", [["id", "label"], *([name, "ab"[i % 2]] for i, name in enumerate(ring))])
    code, _, err = demonet("fit", "e.csv", "--labels", "l.csv", "--out", "run", *FAST)
    assert code == 0, err
    assert any("'7' and '07'" in line for line in err.splitlines())
    nodes = [line.split(",")[0] for line in Path("run/predictions.csv").read_text().splitlines()[1:]]
    assert sorted(nodes) == sorted([*ring, "7"])


def test_a_direction_that_tells_the_classes_is_kept():
    chosen = random.Random(2)
    papers = [f"p{number}" for number in range(200)]
    survey = {paper: chosen.random() < 0.4 for paper in papers}
    cited = {paper: chosen.sample([p for p in papers if p != paper], 6 if survey[paper] else 2) for paper in papers}
    write("c.csv", [["citing", "cited"], *([paper, other] for paper in papers for other in cited[paper])])
    write("p.csv", [["id", "kind"], *([paper, "survey" if survey[paper] else "article"] for paper in papers)])
    scores = {}
    for given in ("", "--undirected", "--directed"):
        command = ["fit", "c.csv", "--labels", "p.csv", "--effort", "quick", "--out", f"run{given}"]
        code, _, err = demonet(*command, *filter(None, [given]))
        assert code == 0, err
        assert ("edges are read as directed" in err) == (not given)
        scores[given] = json.loads(Path(f"run{given}/metrics.json").read_text())["test_metric"]
    assert scores[""] == scores["--directed"] > scores["--undirected"] + 0.1
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert page.index("Edges are read as directed") < page.index("How sure is it?")
    assert demonet("predict", "run", "c.csv", "--out", "p2.csv")[0] == 0
    assert Path("p2.csv").read_bytes() == Path("run/predictions.csv").read_bytes()


def test_numbers_that_may_be_read_in_two_ways_are_asked_for():
    ring = [str(i) for i in range(30)]
    write("e.csv", [["source", "target"], *map(list, zip(ring, ring[1:] + ring[:1], strict=True))])
    for cells, word, fixed in ((["1,234", "2,500"], "--decimal ,", True), (["1.234", "950,50"], "'x'", False)):
        write("x.csv", [["id", "label", "x"], *([name, "ab"[i % 2], cells[i % 2]] for i, name in enumerate(ring))])
        command = ["fit", "e.csv", "--labels", "x.csv", "--label-column", "label", "--features", "x.csv", *FAST]
        code, _, err = demonet(*command, "--out", word.strip("-' "))
        assert (code, word in err) == (2 if fixed else 0, True), err
        if fixed:
            assert demonet(*command, *word.split(), "--out", "fixed")[0] == 0


def book(name, *, merged=False):
    """A workbook with Excel's own dates and numbers."""
    made = Workbook()
    sheet, people = made.active, made.create_sheet("Kunden")
    sheet.title = "Zahlungen"
    sheet.append(["Datum", "von", "nach", "Betrag"])
    for day, payer, payee, amount in transfers(3):
        sheet.append([day, payer, payee, round(amount, 2)])
    people.append(["Kunde", "Risiko", "Seit"])
    for i, customer in enumerate(CUSTOMERS):
        people.append([customer, "hoch" if customer in RISKY else "niedrig", date(2015, 1, 1) + timedelta(37 * i)])
    if merged:
        people.merge_cells("B2:B4")
    made.save(name)


def test_a_workbook_needs_its_package_and_one_value_in_each_cell():
    book("bank.xlsx")
    command = ["fit", "bank.xlsx#Zahlungen", "--labels", "bank.xlsx#Kunden", "--label-column", "Risiko", *FAST]
    command += ["--features", "bank.xlsx#Kunden", "--out", "run"]
    code, _, err = demonet(*command)
    assert (code, err.count("\n"), "pip install 'demonet[excel]'" in err) == (2, 1, True)
    code, _, err = demonet(*command, optional=True)
    assert code == 0, err
    assert "dates in 'Seit'" in err
    assert CUSTOMERS[0] in Path("run/predictions.csv").read_text()
    book("bank.xlsx", merged=True)
    code, _, err = demonet(*command, "--overwrite", optional=True)
    assert (code, "merged cells B2:B4" in err.splitlines()[-1]) == (2, True)


def test_two_unicode_forms_of_a_name_are_one_node():
    names = [f"Müller{i}é" for i in range(24)]
    apart = [unicodedata.normalize("NFD", name) for name in names]
    pairs = [[apart[i] if i % 2 else names[i], names[(i + 1) % 24]] for i in range(24)]
    write("e.csv", [["source", "target"], *pairs], encoding="utf-8")
    write("l.csv", [["id", "Gruppe"], *([apart[i], "äb"[i % 2]] for i in range(24))], encoding="utf-8")
    code, _, err = demonet("fit", "e.csv", "--labels", "l.csv", "--out", "run", *FAST)
    assert code == 0, err
    assert [("NFC" in line) for line in err.splitlines()].count(True) == 2, "one line a file"
    rows = Path("run/predictions.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert sorted(row.split(",")[0] for row in rows) == sorted(names)
