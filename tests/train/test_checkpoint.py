"""Checkpoints: a run that was killed ends in the same bits, and a file that is not one is refused unread."""

import json
import multiprocessing
import signal
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from tests.train import problems, worker

from demonet import DemonetError
from demonet.data.splits import Split
from demonet.tensorfile import read_tensors, write_tensors
from demonet.train import train_graphs, train_nodes
from demonet.train.checkpoint import FORMAT, digest


def told(history):
    return {name: value for name, value in vars(history).items() if name != "seconds"}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return worker.train(tmp_path_factory.mktemp("uninterrupted") / "run.safetensors")


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory):
    """What is left of runs in other processes, with as many threads as this one."""
    folder = tmp_path_factory.mktemp("killed")
    codes = []
    for job in (worker.killed_in_an_epoch, worker.killed_in_the_second_write, worker.resumed):
        process = multiprocessing.get_context("fork").Process(target=job, args=(folder,))
        process.start()
        process.join(200)
        codes.append(process.exitcode)
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0]
    return folder


def test_killed_in_the_middle_and_resumed(aftermath, uninterrupted):
    assert worker.KILLED_AT % 25 != 0
    assert problems.same_bits(load_file(aftermath / "weights.safetensors"), uninterrupted.model.state_dict())
    assert json.loads((aftermath / "history.json").read_text()) == told(uninterrupted.history)
    assert uninterrupted.history.epochs == worker.EPOCHS


def test_killed_while_a_checkpoint_is_written(aftermath, uninterrupted):
    facts = read_tensors(aftermath / "write.safetensors", FORMAT).facts
    assert len(facts["history"]["train_loss"]) == 25  # the first one, whole
    seen = []
    resumed = worker.train(aftermath / "write.safetensors", lambda epoch: seen.append(epoch.number))
    assert seen == list(range(25, worker.EPOCHS))
    assert problems.same_bits(resumed.model.state_dict(), uninterrupted.model.state_dict())
    assert told(resumed.history) == told(uninterrupted.history)


def nodes(path, on_epoch=None, name="default", seed=0, model=None, **train):
    data, split = problems.nodes()
    chosen = problems.quick(name, "nodes", model=model, **{"epochs": 55, "patience": 55} | train)
    return train_nodes(data, split, chosen, on_epoch=on_epoch, checkpoint=path, seed=seed)


def interrupt(at):
    def on_epoch(epoch):
        if epoch.number == at:
            raise KeyboardInterrupt

    return on_epoch


@pytest.mark.parametrize("at", [24, 40])  # on a boundary, the checkpoint is not written yet
def test_control_c_leaves_a_checkpoint_that_can_be_used(tmp_path, at):
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        nodes(path, interrupt(at))
    assert path.exists() == (at >= 25)
    seen = []
    resumed = nodes(path, lambda epoch: seen.append(epoch.number))
    assert seen[0] == (25 if at >= 25 else 0)
    whole = nodes(None)
    assert problems.same_bits(resumed.model.state_dict(), whole.model.state_dict())
    assert told(resumed.history) == told(whole.history)
    assert resumed.history.seconds > 0


def test_a_checkpoint_without_tasks_is_taken(tmp_path):
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        nodes(path, interrupt(30))
    tensors, facts, _ = read_tensors(path, FORMAT)
    write_tensors(path, FORMAT, {name: v for name, v in tensors.items() if "tasks" not in name}, facts)
    assert problems.same_bits(nodes(path).model.state_dict(), nodes(None).model.state_dict())


def test_patience_is_counted_across_the_interruption(tmp_path):
    """Stopped early, killed before that, resumed: it stops in the same epoch."""
    options = {"epochs": 400, "patience": 20, "lr": 0.05}
    whole = nodes(None, **options)
    assert 30 < whole.history.epochs < 400
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        nodes(path, interrupt(whole.history.epochs - 2), **options)
    resumed = nodes(path, **options)
    assert told(resumed.history) == told(whole.history)
    assert problems.same_bits(resumed.model.state_dict(), whole.model.state_dict())


def test_a_finished_run_is_not_trained_again(tmp_path):
    path = tmp_path / "run.safetensors"
    first, seen = nodes(path, epochs=50), []
    again = nodes(path, lambda epoch: seen.append(epoch), epochs=50)
    assert seen == []
    assert problems.same_bits(first.model.state_dict(), again.model.state_dict())
    assert first.test_metric == again.test_metric


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "run.safetensors"
    nodes(path, epochs=30)
    return path.read_bytes()


@pytest.fixture
def saved(tmp_path, written):
    path = tmp_path / "run.safetensors"
    path.write_bytes(written)
    return path


def test_another_run_is_refused(saved):
    before = saved.read_bytes()
    with pytest.raises(DemonetError, match=r"run\.safetensors: .*\btraining\b"):
        nodes(saved, epochs=30, lr=0.02)
    with pytest.raises(DemonetError, match=r"run\.safetensors: .*\btraining\b"):
        nodes(saved, epochs=30, seed=1)
    with pytest.raises(DemonetError, match=r"run\.safetensors: .*\bmodel\b"):
        nodes(saved, epochs=30, model={"hidden": 8})
    with pytest.raises(DemonetError, match=r"run\.safetensors: .*\bmodel\b"):
        nodes(saved, epochs=30, model={"aggr": "mean"})  # the same shapes, another network
    assert saved.read_bytes() == before


def test_another_split_or_graph_is_refused(saved):
    """Going on with another split would train on what is tested."""
    data, split = problems.nodes()
    chosen = problems.quick("default", "nodes", epochs=30, patience=55)
    train_nodes(data, split, chosen, checkpoint=saved)  # the same run: accepted
    swapped = Split(split.name, split.seed, split.train, split.test, split.val)
    with pytest.raises(DemonetError, match=r"run\.safetensors: .*\bsplit\b"):
        train_nodes(data, swapped, chosen, checkpoint=saved)
    other = data.clone()
    other.edge_weight = torch.full((data.edge_index.size(1),), 0.5)
    with pytest.raises(DemonetError, match=r"run\.safetensors: .*\bsplit\b"):
        train_nodes(other, split, chosen, checkpoint=saved)


def test_another_split_of_graphs_is_refused(tmp_path):
    graphs, split = problems.graphs(20)
    chosen = problems.quick("paper", "graphs", epochs=25)
    train_graphs(graphs, split, chosen, checkpoint=tmp_path / "run.safetensors")
    moved = Split(split.name, split.seed, split.train, split.test, split.val)
    with pytest.raises(DemonetError, match=r"run\.safetensors: .*\bsplit\b"):
        train_graphs(graphs, moved, chosen, checkpoint=tmp_path / "run.safetensors")


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("random", "'random'"),
        ("best.head.weight", r"head\.weight"),
        ("adam.0.exp_avg", "Adam"),
        ("model.head.weight", r"head\.weight"),
    ],
)
def test_a_checkpoint_with_a_part_missing_is_refused(saved, missing, named):
    tensors, facts, _ = read_tensors(saved, FORMAT)
    assert missing in tensors
    write_tensors(saved, FORMAT, {name: tensor for name, tensor in tensors.items() if name != missing}, facts)
    with pytest.raises(DemonetError, match=rf"(?s)run\.safetensors: .*{named}"):
        nodes(saved, epochs=30)


def test_half_a_file_is_refused(saved):
    """What else is no checkpoint is refused by the reader of all such files: see tests/test_tensorfile.py."""
    saved.write_bytes(saved.read_bytes()[:2000])
    with pytest.raises(DemonetError, match=r"run\.safetensors: "):
        nodes(saved, epochs=30)


def test_a_folder_that_is_not_there_is_said_before_training(tmp_path):
    seen = []
    with pytest.raises(DemonetError, match=r"none/run\.safetensors: "):
        nodes(tmp_path / "none" / "run.safetensors", seen.append)
    assert seen == []


def test_digests_see_every_value_and_leave_out_what_follows_from_others():
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    different = [x, x.double(), x.view(-1), x.to_sparse_csr(), 2 * x, [x], (x, None), None, torch.tensor(3), 3]
    assert len({digest(value) for value in different}) == len(different)
    assert digest([x, (1, 2)]) == digest([x.clone(), (1, 2)])
    data, split = problems.nodes()
    prepared = train_nodes(data, split, problems.quick("paper", "nodes", epochs=1)).inputs[0]
    assert digest(replace(prepared, neighbourhood=prepared.neighbourhood + 1)) == digest(prepared)
    assert digest(replace(prepared, x=prepared.x + 1)) != digest(prepared)
