"""Training on a GPU: captured steps are the eager ones, and a resumed run ends in the same bits."""

import gc

import pytest
import torch
from tests.train import problems

from demonet.degree.count import count_degree
from demonet.train import Classify, Multilabel, Regress, steps, train_nodes

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def train(preset, **options):
    data, split = problems.nodes()
    return train_nodes(data.to("cuda"), split, problems.quick(preset, "nodes", epochs=60), **options)


def state(trained):
    return torch.cat([tensor.flatten().double() for tensor in trained.model.state_dict().values()])


@pytest.mark.parametrize("preset", ["paper", "default"])
def test_captured_steps_are_the_eager_ones(preset, monkeypatch):
    captured = train(preset)
    monkeypatch.setattr(steps, "WARM_UP", 10**9)
    eager = train(preset)
    assert captured.history.train_loss == eager.history.train_loss
    assert torch.equal(state(captured), state(eager))


@pytest.mark.parametrize("objective", [Classify(metric="macro-f1"), Multilabel(), Regress(), Regress(error="mae")])
def test_every_objective_is_captured(objective, monkeypatch):
    data, split = problems.nodes()
    degree = count_degree(data.edge_index, data.num_nodes).double()
    if objective.task != "classify":
        data.y = torch.stack([degree, -degree] if objective.task == "regress" else [degree > 2, degree > 3], 1).double()
        data.y[::5, 1] = torch.nan
    chosen = problems.quick("default", "nodes", epochs=30)

    def run():
        return train_nodes(data.to("cuda"), split, chosen, objective=objective)

    captured = run()
    monkeypatch.setattr(steps, "WARM_UP", 10**9)
    eager = run()
    assert captured.history.train_loss == eager.history.train_loss
    assert captured.history.val_metric == eager.history.val_metric
    assert torch.equal(state(captured), state(eager))


def test_resumed_ends_in_the_same_bits(tmp_path):
    class StopError(Exception):
        pass

    def stop(epoch):
        if epoch.number == 33:
            raise StopError

    whole = train("paper")
    with pytest.raises(StopError):
        train("paper", checkpoint=tmp_path / "run", on_epoch=stop)
    resumed = train("paper", checkpoint=tmp_path / "run")
    assert resumed.history.train_loss == whole.history.train_loss
    assert torch.equal(state(resumed), state(whole))


def test_garbage_with_a_graph_in_it_does_not_break_the_next_capture():
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)  # collect as often as possible
    try:
        first, second = train("paper"), train("paper")
    finally:
        gc.set_threshold(*before)
    assert first.history.train_loss == second.history.train_loss


def test_the_callers_random_numbers_are_not_spent():
    torch.cuda.manual_seed(5)
    wanted = torch.rand(3, device="cuda")
    torch.cuda.manual_seed(5)
    train("paper")
    assert torch.equal(torch.rand(3, device="cuda"), wanted)
