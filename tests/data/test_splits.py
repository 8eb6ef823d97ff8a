import hashlib
import json
import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from demonet import DemonetError
from demonet.data import Split, check_split, fractions, k_fold, nested_k_fold, thirds, train_fraction


def labels(n=131, classes=4, unlabelled=0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=generator)
    y[:unlabelled] = -1
    return y


def everyone(split):
    return torch.cat([split.train, split.val, split.test]).sort().values


def test_the_papers_splits_have_their_names_and_sizes():
    split = thirds(labels(131), seed=0)
    assert [split.name, *(len(part) for part in (split.train, split.val, split.test))] == ["thirds", 44, 43, 44]
    split = fractions(labels(1000), (0.1, 0.2, 0.7), seed=3)
    assert (split.name, len(split.train), len(split.val), len(split.test)) == ("10/20/70", 100, 200, 700)


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_a_sweep_carves_validation_out_of_training(fraction):
    split = train_fraction(labels(1000), fraction, seed=0)
    assert len(split.test) == 1000 - round(1000 * fraction)
    assert len(split.val) == round(200 * fraction)
    assert split.name == f"train-{round(100 * fraction)}%"


@given(st.integers(40, 80), st.integers(2, 4), st.integers(0, 10), st.integers(0, 5), st.booleans())
def test_every_split_is_fit_for_use_and_covers_the_labelled(n, classes, unlabelled, seed, stratified):
    y = labels(n, classes, unlabelled, seed)
    for split in (thirds(y, seed, stratified), fractions(y, (0.5, 0.2, 0.3), seed, stratified)):
        check_split(split, y)
        assert torch.equal(everyone(split), (y >= 0).nonzero().flatten())


def test_stratified_parts_hold_each_class_in_proportion():
    y = torch.tensor([0] * 90 + [1] * 30 + [2] * 9 + [3])
    split = thirds(y, 0, stratified=True)
    counts = torch.bincount(y)
    for part in (split.train, split.val, split.test):
        assert ((torch.bincount(y[part], minlength=4) - counts / 3).abs() <= 1).all()
    assert 129 in split.train  # the only one of its class


def test_seeds_decide():
    y = labels()
    assert thirds(y, 1) == thirds(y, 1)
    assert thirds(y, 1) != thirds(y, 2)
    assert len({thirds(y, seed).hash for seed in range(20)}) == 20


def test_more_classes_than_training_items_are_no_error(refuses):
    y = torch.zeros(100, dtype=torch.int64)
    y[:50] = torch.arange(1, 51)
    stratified = fractions(y, (0.1, 0.2, 0.7), 0, stratified=True)
    assert y[stratified.train].unique().numel() == 10
    for split in (stratified, fractions(y, (0.1, 0.2, 0.7), 0)):
        check_split(split, y)
        assert len(split.train) == 10
        assert torch.equal(everyone(split), torch.arange(100))
    y = torch.tensor([0, 0, 1, 1])
    refuses(lambda: fractions(y, (0.25, 0.25, 0.5), 0, stratified=True), "1 training item", "1 of 2 classes")
    refuses(lambda: thirds(torch.full((5,), -1), 0), "label")


def test_wrong_fractions_are_refused(refuses):
    refuses(lambda: fractions(labels(), (0.5, 0.5, 0.5), 0), "0.5")
    refuses(lambda: train_fraction(labels(), 1.0, 0), "1.0")


def test_k_fold_tests_everyone_once_and_stratifies():
    y = labels(103, unlabelled=3)
    splits = k_fold(y, 10, seed=0)
    assert torch.equal(torch.cat([split.test for split in splits]).sort().values, torch.arange(3, 103))
    assert torch.equal(torch.cat([split.val for split in splits]).sort().values, torch.arange(3, 103))
    for split in splits:
        check_split(split, y)
        assert torch.equal(everyone(split), torch.arange(3, 103))
        counts = torch.bincount(y[split.test], minlength=4)
        assert ((counts - torch.bincount(y[3:]) / 10).abs() < 1).all()


def test_nested_k_fold_never_shows_the_test_fold():
    y = labels(60)
    nested = nested_k_fold(y, 5, 3, seed=0)
    assert [len(inner) for inner in nested] == [3] * 5
    for inner in nested:
        assert all(torch.equal(split.test, inner[0].test) for split in inner)
        validated = torch.cat([split.val for split in inner]).sort().values
        assert torch.equal(torch.cat([validated, inner[0].test]).sort().values, torch.arange(60))
        for split in inner:
            check_split(split, y)
    assert torch.equal(torch.cat([inner[0].test for inner in nested]).sort().values, torch.arange(60))


def test_too_many_folds_are_refused(refuses):
    refuses(lambda: k_fold(labels(5), 6, 0), "6 folds", "5")
    refuses(lambda: k_fold(labels(5), 2, 0), "2 folds", "3")


def test_a_saved_split_comes_back(tmp_path):
    split = thirds(labels(), 7)
    split.save(tmp_path / "split.json")
    back = Split.load(tmp_path / "split.json")
    assert back == split
    assert torch.equal(back.train, split.train)
    assert [path.name for path in tmp_path.iterdir()] == ["split.json"]


def test_hash_is_stable_and_sees_every_change():
    split = Split("a", 0, torch.tensor([2, 0]), torch.tensor([1]), torch.tensor([3]))
    written = (
        b"a|0|train|" + struct.pack("<2q", 0, 2) + b"|val|" + struct.pack("<q", 1) + b"|test|" + struct.pack("<q", 3)
    )
    assert split.hash == hashlib.sha256(written).hexdigest()[:12]
    changed = [
        Split("b", 0, split.train, split.val, split.test),
        Split("a", 1, split.train, split.val, split.test),
        Split("a", 0, split.train, split.test, split.val),
        Split("a", 0, torch.tensor([0]), torch.tensor([2, 1]), split.test),
    ]
    assert len({split.hash, *(other.hash for other in changed)}) == 5


def test_a_changed_or_damaged_file_is_refused(tmp_path, refuses):
    path = tmp_path / "split.json"
    refuses(lambda: Split.load(path), "split.json: ")
    thirds(labels(), 0).save(path)
    record = json.loads(path.read_text())
    record["train"], record["test"] = record["test"], record["train"]
    path.write_text(json.dumps(record))
    refuses(lambda: Split.load(path), "split.json", "hash")


@pytest.mark.parametrize(
    "content", [b'{"train": [Infinity]}', b'{"train": [1180591620717411303424]}', b"[" * 100_000, b"", b"[]", b"\xff"]
)
def test_a_damaged_split_file_is_named(tmp_path, content):
    whole = {"name": "a", "seed": 0, "val": [], "test": [], "hash": "0"}
    if content.startswith(b"{"):
        content = content[:-1] + b"," + json.dumps(whole).encode()[1:]
    path = tmp_path / "split.json"
    path.write_bytes(content)
    with pytest.raises(DemonetError, match=f"^{path}: "):
        Split.load(path)
