"""Training over processes is that of one process: the same losses, the same metrics, the same checkpoint."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.distributed as dist
from tests.distributed.cases import CLASSES, MODELS, Case, histories, model, train
from tests.distributed.graphs import random_graph
from tests.distributed.processes import run

from demonet.distributed.norm import BatchNorm
from demonet.distributed.steps import PartSteps
from demonet.tensorfile import read_tensors
from demonet.train import TrainConfig
from demonet.train.checkpoint import FORMAT, load_checkpoint
from demonet.train.steps import Steps

# The rest of the product is in tests/distributed/__main__.py.
CASES = [
    Case({"scheme": "weight"}, directed=True, partition="empty part"),
    Case({"scheme": "hash", **MODELS["batch norm"]}, partition="balanced", by="in"),
    Case({"scheme": "smooth", **MODELS["refined"]}, directed=True, by="pair"),
    Case(MODELS["stem"], task="multilabel", weighted=True, partition="empty part"),
    Case({**MODELS["stem"], "layers": 1}, task="regress", sparse=True),
    Case(MODELS["degree head"], directed=True, sparse=True, by="out"),
]
EPOCHS = 12


def test_losses_and_metrics_do_not_depend_on_the_number_of_processes():
    alone, every = run(1, histories, CASES, EPOCHS)[0], run(3, histories, CASES, EPOCHS)
    for found in every[1:]:
        assert found == every[0]  # the same bits in every process
    for case, expected, found in zip(CASES, alone, every[0], strict=True):
        for before, now in zip(expected, found, strict=True):
            assert len(now) == EPOCHS
            np.testing.assert_allclose(now, before, rtol=0, atol=1e-9, err_msg=case.name)
        assert np.ptp(found[0]) > 1e-3, case.name  # it has learned something, so that equality says something


STOPPED = Case(MODELS["stem"], partition="balanced", dtype=torch.float32)


class StoppedError(Exception):
    pass


def interrupted(folder, epochs, stop):
    """Train; then train, stop, and go on: both histories."""

    def tell(epoch):
        if epoch.number + 1 == stop:
            raise StoppedError

    def options(name):
        return {"checkpoint": folder / name if dist.get_rank() == 0 else None, "checkpoint_every": 4}

    whole = train(STOPPED, epochs, **options("whole.safetensors"))
    with pytest.raises(StoppedError):
        train(STOPPED, epochs, on_epoch=tell, **options("again.safetensors"))
    dist.barrier()
    again = train(STOPPED, epochs, **options("again.safetensors"))
    return [(history.train_loss, history.val_loss, history.best_epoch) for history in (whole, again)]


def test_an_interrupted_training_goes_on_to_the_same_bits_and_its_checkpoint_is_that_of_one_process(tmp_path):
    """Names and shapes, and the description of the model, are those of a model that knows nothing of processes."""
    first, second = run(2, interrupted, tmp_path, 8, 6)
    assert first[0] == first[1] == second[0] == second[1]
    whole, again = (read_tensors(tmp_path / f"{name}.safetensors", FORMAT) for name in ("whole", "again"))
    assert whole.tensors.keys() == again.tensors.keys()
    assert all(torch.equal(whole.tensors[name], again.tensors[name]) for name in whole.tensors)
    plain, fingerprint = model(STOPPED, *random_graph(), CLASSES), whole.facts["fingerprint"]
    assert fingerprint["model"] == repr(plain)
    steps, path = Steps(plain, TrainConfig(), torch.device("cpu"), None), tmp_path / "whole.safetensors"
    best, _ = load_checkpoint(path, plain, steps.optimizer, fingerprint, torch.device("cpu"))
    assert best.keys() == plain.state_dict().keys()


def normalised(rows, weights):
    """Output, derivative and running statistics of a normalisation of this process's rows."""
    norm = BatchNorm(3).double()
    x = rows.tensor_split([2, 2])[dist.get_rank()].requires_grad_()  # the second of three has no row
    out = norm(x)
    (out * weights.tensor_split([2, 2])[dist.get_rank()]).sum().backward()
    norm.eval()
    found = out, x.grad, norm.weight.grad, norm.running_mean, norm.running_var, norm(x)
    return [tensor.detach().numpy() for tensor in found]


def test_batch_normalisation_is_that_of_all_rows():
    rows, weights = (torch.randn(9, 3, dtype=torch.float64) * 5 + 100 for _ in range(2))
    found = run(3, normalised, rows, weights)
    norm, x = torch.nn.BatchNorm1d(3).double(), rows.clone().requires_grad_()
    out = norm(x)
    (out * weights).sum().backward()
    norm.eval()
    for place, wanted in ((0, out.detach()), (1, x.grad), (5, norm(x).detach())):
        np.testing.assert_allclose(np.concatenate([each[place] for each in found]), wanted, rtol=1e-9)
    np.testing.assert_allclose(sum(each[2] for each in found), norm.weight.grad)
    for each in found:
        np.testing.assert_allclose(each[3], norm.running_mean)
        np.testing.assert_allclose(each[4], norm.running_var)


def reduced(without):
    """Gradients after they are added up; the parameters ``without`` have none here."""
    layer = torch.nn.Linear(2, 3)
    steps = PartSteps(layer, TrainConfig(), torch.device("cpu"), None)
    for name, parameter in layer.named_parameters():
        parameter.grad = None if name in without else torch.full_like(parameter, dist.get_rank() + 1.0)
    steps._add_gradients()
    return {
        name: None if (grad := parameter.grad) is None else grad.tolist()
        for name, parameter in layer.named_parameters()
    }


def test_gradients_are_added_up_and_an_unused_parameter_has_none():
    for found in run(2, reduced, ["bias"]):
        assert found["bias"] is None
        assert found["weight"] == [[3.0, 3.0]] * 3
