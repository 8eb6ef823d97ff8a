"""People who write Python: inside a PyG project, from scikit-learn, with the paper in hand; through the wheel."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pages import DATA, ROOT, blocks
from tests.walks.command import demonet, python

PYG = """
import torch, torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from demonet import DEMOConv, DEMONet, DEMONetClassifier, DemonetError

torch.manual_seed(0)
n = 60
around = torch.arange(n)
edges = torch.cat([torch.stack([around, (around + 1) % n]), torch.stack([torch.zeros(20).long(), around[1:40:2]])], 1)
data = Data(x=torch.randn(n, 8), y=(around % 2), edge_index=torch.cat([edges, edges.flip(0)], 1))
data.train_mask, data.val_mask, data.test_mask = around % 4 < 2, around % 4 == 2, around % 4 == 3
assert DEMOConv(8, 16)(data.x, data.edge_index).shape == (n, 16)
options = dict(hidden_channels=16, num_layers=2, out_channels=2, dropout=0.5, act="relu", norm="batch", jk="cat")
for model in (GCN(8, **options), DEMONet(8, **options)):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
again = DEMONet(8, **options)
again(data.x, data.edge_index)
again.load_state_dict(model.state_dict())
assert torch.equal(again.eval()(data.x, data.edge_index), model.eval()(data.x, data.edge_index))
classifier = DEMONetClassifier(model="network", epochs=2).fit(data)
assert torch.equal(classifier.split_.train, data.train_mask.nonzero().view(-1))
print("score", classifier.score(data))
"""

SKLEARN = """
import numpy as np, pandas as pd
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from demonet import DEMONetClassifier, DEMONetRegressor

names = [f"u{i}" for i in range(40)]
calls = pd.DataFrame({"source": names, "target": names[1:] + names[:1], "weight": 1.5})
calls = pd.concat([calls, pd.DataFrame({"source": "u0", "target": names[2:20:3], "weight": 2.0})])
ages = [20 + i if i % 7 else None for i in range(40)]
people = pd.DataFrame({"age": ages, "city": ["Oslo", "Rome"] * 20}, index=names)
role = pd.Series(["even" if i % 2 == 0 else "odd" for i in range(40)], index=names)
role.iloc[[3, 8]] = np.nan
model = DEMONetClassifier(graph=calls, attributes=people, model="network", epochs=3, verbose=0)
model.fit(y=role)
assert list(model.feature_names_in_) == ["age", "city"], model.feature_names_in_
assert set(model.classes_) == {"even", "odd"}
frame = model.set_output(transform="pandas").transform(["u3", "u8"])
assert isinstance(frame, pd.DataFrame) and list(frame.index) == ["u3", "u8"]
search = GridSearchCV(clone(model), {"scheme": ["weight", "smooth"]}, cv=2)
known = role.dropna()
search.fit(list(known.index), list(known))
DEMONetClassifier(graph=calls, attributes=people.assign(age=-people.age), model="kernel").fit(y=role)
number = pd.Series(range(40), index=names, dtype=float)
regressor = DEMONetRegressor(graph=calls, model="kernel").fit(y=number)
print("best", search.best_params_["scheme"], len(regressor.predict(["u1"])))
two = DEMONetClassifier(graph=calls, model="kernel").fit(names, [-1, 1] * 20)
assert list(two.classes_) == [-1, 1], two.classes_
"""


def test_a_pyg_project_takes_the_layer_the_model_and_its_masks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = python(PYG)
    assert code == 0, err
    assert out.startswith("score ")


def test_data_frames_go_in_and_come_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = python(SKLEARN, optional=True)
    assert code == 0, err
    assert out.startswith("best ")


@pytest.mark.data
def test_a_reader_of_the_paper_finds_its_sets_and_the_tables(tmp_path, monkeypatch):
    if not DATA.is_dir():
        pytest.skip("the paper's data sets are not here")
    monkeypatch.chdir(tmp_path)
    code, out, err = demonet("datasets", "brazil")
    assert code == 0, err
    assert "1,003" in out
    code, out, err = demonet(
        "fit", "brazil", "--preset", "paper", "--scheme", "weight", "--epochs", "3", "--out", "run"
    )
    assert code == 0, err
    code, out, err = demonet("reproduce", "nodes", "--quick", "--render-only", "--out", "paper")
    assert code == 0, err
    page = Path("paper/paper.html").read_text(encoding="utf-8")
    assert page.index("The verdict") < page.index("How to read this page") < page.index("Versions and runs")


RECIPES = f"""
import sys
from pathlib import Path
sys.path.append({str(ROOT)!r})
import demonet
from tests.pages import run_page
assert not Path(demonet.__file__).is_relative_to({str(ROOT)!r})
run_page(Path({str(ROOT / "docs" / "recipes.md")!r}), Path.cwd())
"""


@pytest.mark.data
def test_every_recipe_does_what_is_shown(tmp_path, monkeypatch):
    if not (DATA / "public" / "cora").is_dir():
        pytest.skip("the page reads MUTAG and Cora, and they are not here")
    monkeypatch.chdir(tmp_path)
    code, _, err = python(RECIPES, optional=True)
    assert code == 0, err


def test_a_reader_of_the_documentation_alone(tmp_path, monkeypatch):
    """The blocks of the first page, with the installed package."""
    monkeypatch.chdir(tmp_path)
    page = list(blocks(ROOT / "docs" / "quickstart-files.md"))
    for block in page:
        if block.title:
            Path(block.title).write_text(block.text)
    commands = [
        line[2:].split("  #")[0].split()
        for block in page
        if block.language == "console"
        for line in block.text.splitlines()
        if line.startswith("$ demonet")
    ]
    assert {command[1] for command in commands} == {"fit", "predict", "embed", "report"}
    for command in commands:
        code, _, err = demonet(*command[1:])
        if command[-1].endswith(".xlsx"):
            assert (code, err.count("\n"), "demonet[excel]" in err) == (2, 1, True)
            code, _, err = demonet(*command[1:], optional=True)
        assert code == 0, err
    imports = next(block for block in blocks(ROOT / "docs" / "index.md") if block.language == "python")
    assert python(imports.text)[0] == 0
