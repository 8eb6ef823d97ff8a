"""``model=``: the kernel machine and the ensemble in place of a network, through the same estimators."""

import networkx as nx
import numpy as np
import pytest
import torch
from tests.estimators.problems import QUICK, families, roles, words

from demonet import DEMONetClassifier, DemonetError, DEMONetGraphClassifier, DEMONetGraphRegressor, DEMONetRegressor
from demonet.data.splits import fractions
from demonet.estimators.core import FORMAT
from demonet.estimators.models import narrow
from demonet.features.views import view_of
from demonet.methods.kernel_ridge import KernelRidge
from demonet.tensorfile import read_tensors, write_tensors

KERNEL, AUTO = {"model": "kernel"}, {"model": "auto", "effort": "quick"}
MODELS = pytest.mark.parametrize("options", [KERNEL, AUTO], ids=["kernel", "auto"])


@pytest.fixture(scope="module")
def fitted():
    """Each model once, on nodes and on graphs."""
    graphs, names = families()
    every = {}
    for options in (KERNEL, AUTO):
        every[options["model"], "nodes"] = DEMONetClassifier(**options).fit(words())
        every[options["model"], "graphs"] = DEMONetGraphClassifier(**options).fit(graphs, names)
    return every


@MODELS
def test_nodes_are_fitted_stored_and_predicted_in_another_graph(options, fitted, tmp_path):
    data, model = words(), fitted[options["model"], "nodes"]
    assert model.classes_.tolist() == sorted(data.class_names)
    probability = model.predict_proba()
    np.testing.assert_allclose(probability.sum(1), 1)
    assert model.score(data) > 0.8
    assert model.predict([3, 1]).tolist() == model.predict()[[3, 1]].tolist()
    model.save(tmp_path / "m.safetensors")
    loaded = DEMONetClassifier.load(tmp_path / "m.safetensors", graph=data)
    np.testing.assert_array_equal(loaded.predict_proba(), probability)
    np.testing.assert_array_equal(loaded.transform(), model.transform())
    assert loaded.get_params() | {"graph": None} == model.get_params()
    assert loaded.split_ == model.split_
    assert loaded.transform().dtype == np.float32
    other = words(1, motifs=9)
    hub = torch.stack([torch.arange(1, 21), torch.zeros(20, dtype=torch.long)])
    other.edge_index = torch.cat([other.edge_index, hub, hub.flip(0)], 1)  # a degree that training never saw
    np.testing.assert_array_equal(loaded.predict_proba(other), model.predict_proba(graph=other))
    assert loaded.score(other) > 0.4  # the largest class is a seventh


@MODELS
def test_graphs_are_fitted_and_stored(options, fitted, tmp_path):
    (graphs, names), model = families(), fitted[options["model"], "graphs"]
    assert model.score(graphs, names) > 0.8
    model.save(tmp_path / "m.safetensors")
    loaded = DEMONetGraphClassifier.load(tmp_path / "m.safetensors")
    others = [nx.star_graph(40), nx.path_graph(2), *graphs[:3]]
    np.testing.assert_array_equal(loaded.predict_proba(others), model.predict_proba(others))
    np.testing.assert_array_equal(loaded.transform(others), model.transform(others))
    assert set(loaded.predict(others)) <= set(names)


def test_the_table_of_candidates_is_kept(fitted, tmp_path):
    model = fitted["auto", "nodes"]
    table = model.candidates_
    assert {"name", "loss", "loss_low", "loss_high", "weight", "seconds", "status", "reason"} <= set(table[0])
    assert sum(row["weight"] for row in table) == pytest.approx(1)
    judged = [row for row in table if row["status"] == "fitted"]
    assert all(row["loss_low"] <= row["loss"] <= row["loss_high"] for row in judged)
    model.save(tmp_path / "m.safetensors")
    assert DEMONetClassifier.load(tmp_path / "m.safetensors").candidates_ == table


def test_a_given_split_is_used_and_its_test_part_is_not():
    data = words(motifs=9)
    split = fractions(data.y, (0.4, 0.3, 0.3), 0, stratified=True)
    told = []
    scrambled = data.clone()
    scrambled.y[split.test] = scrambled.y[split.test].flip(0)
    for options in (KERNEL, AUTO | {"time_limit": 1e-6}):  # of the ensemble, the first candidate alone
        model = DEMONetClassifier(**options).fit_split(data, split, on_candidate=told.append)
        assert model.split_ == split
        again = DEMONetClassifier(**options).fit_split(scrambled, split)
        np.testing.assert_array_equal(again.predict_proba(), model.predict_proba())
    assert {progress.candidate.name for progress in told} >= {"machine", "linear"}


@MODELS
def test_the_effect_of_the_degree_is_measured_on_all_labelled_nodes(options, fitted):
    model = fitted[options["model"], "nodes"]
    effect = model.degree_effect()
    assert effect.items == len(model.split_.train) + len(model.split_.val)
    assert set(effect.accuracy) == {"degree", "none", "shuffled"}


def test_shares_add_up(fitted):
    model = fitted["kernel", "nodes"]
    shares = model.shares()
    assert set(shares) <= {"seed", "shared", "degree", "bias", "structure", "constant", "map"}
    np.testing.assert_allclose(sum(shares.values()), model.transform(), atol=1e-4)
    why = model.explain(7)
    assert why.prediction == model.predict([7])[0]
    assert why.confidence == pytest.approx(model.predict_proba([7]).max())
    column = list(model.classes_).index(why.prediction) if model.transform().shape[1] > 1 else 0
    assert sum(why.shares.values()) == pytest.approx(model.transform([7])[0, column], abs=1e-4)
    graphs = families()[0]
    sets = fitted["kernel", "graphs"]
    np.testing.assert_allclose(sum(sets.shares(graphs).values()), sets.transform(graphs), atol=1e-4)


def test_numbers(tmp_path):
    data = words()
    y = 100 + 10 * np.log1p(np.bincount(data.edge_index[1], minlength=data.num_nodes)) + data.x[:, 0].numpy()
    model = DEMONetRegressor(graph=data, **KERNEL).fit(np.arange(40), y[:40])
    assert model.score(np.arange(40, len(y)), y[40:]) > 0.9
    np.testing.assert_allclose(sum(model.shares().values())[:, 0], model.predict(), rtol=1e-4)
    assert model.explain(3).prediction == pytest.approx(model.predict([3])[0])
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(DEMONetRegressor.load(tmp_path / "m.safetensors", data).predict(), model.predict())
    graphs = [nx.star_graph(n) for n in range(3, 23)]
    sets = DEMONetGraphRegressor(**KERNEL).fit(graphs, range(3, 23))
    assert sets.score(graphs, range(3, 23)) > 0.9


REFUSED = {
    "scheme": "hash",
    "hidden": 8,
    "lr": 0.1,
    "epochs": 3,
    "patience": 3,
    "preset": "paper",
    "features": "degree-rbf",
    "metric": "auc",
}


@MODELS
def test_parameters_of_networks_are_refused(options):
    for name, value in REFUSED.items():
        if (name, options["model"]) != ("metric", "auto"):  # which chooses the weights, see below
            with pytest.raises(DemonetError, match=f"{name}=.*{options['model']}"):
                DEMONetClassifier(**options, **{name: value}).fit(roles())


def test_what_a_model_does_not_have_is_refused(fitted, tmp_path):
    for options in (
        {"model": "network", "effort": "quick"},
        {"model": "network", "time_limit": 3.0},
        {"model": "kernel", "time_limit": 3.0},
    ):
        with pytest.raises(DemonetError, match=list(options)[-1] + "="):
            DEMONetClassifier(**options).fit(roles())
    with pytest.raises(DemonetError, match=r"'model'.*'forest'"):
        DEMONetClassifier(model="forest").fit(roles())
    with pytest.raises(DemonetError, match=r"metric=.*'kernel'"):
        DEMONetRegressor(metric="mae", **KERNEL).fit(roles())
    with pytest.raises(DemonetError, match=r"'rmse'"):
        DEMONetClassifier(metric="rmse", **AUTO).fit(roles())
    data = words()
    with pytest.raises(DemonetError, match=r"\by\b.*model='kernel'"):
        DEMONetClassifier(graph=data, **KERNEL).fit(np.arange(9), np.eye(9)[:, :3])
    split = fractions(data.y, (0.5, 0.5, 0.0), 0, stratified=True)
    with pytest.raises(DemonetError, match=r"checkpoint.*model='kernel'"):
        DEMONetClassifier(**KERNEL).fit_split(data, split, checkpoint=tmp_path / "c.pt")
    model = fitted["auto", "nodes"]
    with pytest.raises(DemonetError, match="model='network'"):
        model.to_onnx(tmp_path / "m.onnx")
    for call in (model.shares, lambda: model.fit_split(data, split, on_epoch=print)):
        with pytest.raises(DemonetError):
            call()
    with pytest.raises(DemonetError, match=r"\b0\b.*attributes.*\b12\b"):
        model.predict(graph=roles())
    network = DEMONetClassifier(**QUICK).fit(roles())
    with pytest.raises(DemonetError, match="degree_effect"):
        network.degree_effect()


@MODELS
def test_files_that_are_damaged_or_of_another_kind_are_refused(options, fitted, tmp_path):
    path = tmp_path / "m.safetensors"
    fitted[options["model"], "nodes"].save(path)
    with pytest.raises(DemonetError, match="DEMONetClassifier"):
        DEMONetGraphClassifier.load(path)
    tensors, facts, form = read_tensors(path, FORMAT)
    for missing in [name for name in tensors if "split" in name or "degree" in name or "alpha" in name]:
        write_tensors(path, form, {name: t for name, t in tensors.items() if name != missing}, facts)
        with pytest.raises(DemonetError):
            DEMONetClassifier.load(path)
    for changed in ({"kind": "other"}, {"model": {}}, {"parameters": facts["parameters"] | {"model": "network"}}):
        write_tensors(path, form, tensors, facts | changed)
        with pytest.raises(DemonetError):
            DEMONetClassifier.load(path)


def test_what_auto_is(fitted):
    """An ensemble for classes, tables of labels and numbers."""
    for estimator in (DEMONetClassifier, DEMONetGraphClassifier, DEMONetRegressor, DEMONetGraphRegressor):
        assert estimator().model == "auto"
    assert fitted["auto", "nodes"].model_.name == "auto"
    data = words()
    degree = np.bincount(data.edge_index[1], minlength=data.num_nodes).astype(float)
    rows = np.arange(data.num_nodes // 2)
    labels = np.stack([degree > 2, degree > 3], 1).astype(float)
    for made, y in ((DEMONetRegressor, degree), (DEMONetClassifier, labels)):
        model = made(graph=data, time_limit=1e-3, **AUTO).fit(rows, y[rows])  # time for the first candidate alone
        assert model.model_.name == "auto"
        assert sum(row["weight"] for row in model.candidates_) == pytest.approx(1)
        assert model.predict().shape == y.shape


def test_the_whole_ensemble_is_explained(fitted, tmp_path):
    """Not one kernel machine in it: the prediction with a neighbour or a word, less that without."""
    model = fitted["auto", "nodes"]
    why, before = model.explain(7), model.predict_proba([7])[0]
    assert why.confidence == pytest.approx(before.max())
    column = model.classes_.tolist().index(why.prediction)
    assert {reason.kind for reason in why.reasons} >= {"column", "neighbour"}
    strongest = next(reason for reason in why.reasons if reason.kind == "neighbour")
    data, other = model.graph_.clone(), int(strongest.name)
    source, target = data.edge_index
    cut = ((source == 7) & (target == other)) | ((source == other) & (target == 7))
    data.edge_index = data.edge_index[:, ~cut]
    assert before[column] - model.predict_proba([7], graph=data)[0, column] == pytest.approx(strongest.effect)
    model.save(tmp_path / "m.safetensors")
    again = DEMONetClassifier.load(tmp_path / "m.safetensors", model.graph_).explain(7)
    assert [reason.name for reason in again.reasons] == [reason.name for reason in why.reasons]


def test_graphs_are_explained(fitted):
    graphs = families()[0]
    why = fitted["auto", "graphs"].explain(graphs, 3)
    assert (why.item, why.degree) == (3, graphs[3].num_nodes)
    assert {reason.kind for reason in why.reasons} == {"node"}


def test_embeddings_of_an_ensemble_are_no_probabilities(fitted, monkeypatch):
    """The components of a kernel: products are the kernel itself, near its landmarks; of other members, their view."""
    model = fitted["auto", "nodes"]
    ensemble, found = model.model_.ensemble, model.transform()
    kernels = [(w, m) for w, m in zip(ensemble.weights, ensemble.members, strict=True) if isinstance(m, KernelRidge)]
    kernel = max(kernels, key=lambda pair: pair[0])[1]
    view = view_of(model.graph_, ensemble._view_state)
    np.testing.assert_allclose(found, kernel.embed(view), atol=1e-5)
    rows = kernel.rows(view)
    (gram,) = kernel.grams(rows, rows, [kernel.facts["length"]])
    landmarks = model.split_.train.numpy()
    assert np.abs((found @ found.T - gram.numpy())[np.ix_(landmarks, landmarks)]).mean() < 0.05
    monkeypatch.setattr(KernelRidge, "embed", lambda kernel, view: None)
    np.testing.assert_allclose(model.transform(), narrow(view.description), atol=1e-5)
    graphs = fitted["auto", "graphs"].transform(families()[0])
    assert np.isfinite(graphs).all()
    assert len(graphs) == len(families()[0])


def test_an_interrupted_fit_goes_on_with_the_finished_candidates(tmp_path):
    data, begun = words(motifs=9), []
    split = fractions(data.y, (0.5, 0.3, 0.2), 0, stratified=True)
    whole = DEMONetClassifier(**AUTO).fit_split(data, split)

    def interrupt(progress):
        if (progress.stage, progress.number) == ("fit", 2):
            raise KeyboardInterrupt

    def listen(progress):
        if (progress.stage, progress.candidate.status) == ("fit", "waiting"):
            begun.append(progress.candidate.name)

    with pytest.raises(KeyboardInterrupt):
        DEMONetClassifier(**AUTO).fit_split(data, split, checkpoint=tmp_path / "c", on_candidate=interrupt)
    again = DEMONetClassifier(**AUTO).fit_split(data, split, checkpoint=tmp_path / "c", on_candidate=listen)
    assert len(begun) == len(again.candidates_) - 2  # two were finished
    np.testing.assert_array_equal(again.predict_proba(), whole.predict_proba())
    np.testing.assert_array_equal(again.model_.ensemble.strict_outputs, whole.model_.ensemble.strict_outputs)
    assert [row["weight"] for row in again.candidates_] == [row["weight"] for row in whole.candidates_]
    other = fractions(data.y, (0.5, 0.3, 0.2), 1, stratified=True)
    with pytest.raises(DemonetError, match=r"\.safetensors: .*split"):
        DEMONetClassifier(**AUTO).fit_split(data, other, checkpoint=tmp_path / "c")
    file = next((tmp_path / "c").glob("machine.fit.*"))
    raw = file.read_bytes()
    file.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(DemonetError, match="checksum"):
        DEMONetClassifier(**AUTO).fit_split(data, split, checkpoint=tmp_path / "c")


def test_progress_is_a_line_a_candidate(capfd):
    model = DEMONetClassifier(verbose=True, time_limit=1e-6, **AUTO).fit(words())
    lines = capfd.readouterr().err.splitlines()
    told = sorted(line.split(": ")[1].split()[-1] for line in lines)  # the cheapest comes first
    assert told == sorted(row["name"] for row in model.candidates_)
    assert "skipped" in lines[-1]
