"""DegreeTasks: any degree, seen or not, has a task."""

import copy
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.layers import task_of

from demonet.degree import DegreeTasks, OpenTasks
from demonet.errors import DemonetError


def of(tasks, *degrees):
    return tasks(torch.tensor(degrees)).tolist()


def test_exact_by_hand():
    tasks = DegreeTasks.exact(torch.tensor([5, 1, 2, 1, 5]))
    assert tasks.num_tasks == 4
    assert tasks.max_degree == 5
    assert of(tasks, 1, 2, 5) == [0, 1, 2]
    assert of(tasks, 0, 3, 4, 6, 10**9) == [3] * 5
    assert tasks.names() == ["1", "2", "5", "unseen"]


def test_buckets_by_hand():
    tasks = DegreeTasks.buckets([1, 2, 4])
    assert tasks.num_tasks == 4
    assert of(tasks, 0, 1, 2, 3, 4, 5, 10**9) == [0, 1, 2, 2, 3, 3, 3]
    assert tasks.names() == ["0", "1", "2-3", "4+"]
    assert of(DegreeTasks.buckets([]), 0, 7) == [0, 0]
    assert torch.equal(DegreeTasks.buckets(torch.tensor([1, 2, 4])).boundaries, tasks.boundaries)


def test_log2_by_hand():
    tasks = DegreeTasks.log2(9)
    assert of(tasks, 0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 1000) == [0, 1, 2, 2, 3, 3, 4, 4, 4, 4, 4]
    assert tasks.num_tasks == 5
    assert tasks.max_degree == 9
    assert DegreeTasks.log2(0).num_tasks == 1
    assert DegreeTasks.log2(1).num_tasks == 2


def test_quantiles_by_hand():
    assert DegreeTasks.quantiles(torch.arange(1, 9), 4).boundaries.tolist() == [3, 5, 7]
    # Five of eight nodes have degree 1: the cuts at the second and fourth node fall inside it and merge.
    tied = DegreeTasks.quantiles(torch.tensor([1, 1, 1, 1, 1, 2, 3, 9]), 4)
    assert tied.boundaries.tolist() == [3]
    assert of(tied, 0, 1, 2, 3, 9, 100) == [0, 0, 0, 1, 1, 1]
    assert DegreeTasks.quantiles(torch.tensor([4, 4, 4]), 3).num_tasks == 1
    assert DegreeTasks.quantiles(torch.tensor([], dtype=torch.long), 3).num_tasks == 1


@given(st.lists(st.integers(0, 12), min_size=1, max_size=40), st.integers(1, 6))
def test_quantiles_are_as_equal_as_ties_allow(degrees, k):
    tasks = DegreeTasks.quantiles(torch.tensor(degrees), k)
    task = of(tasks, *degrees)
    assert 1 <= tasks.num_tasks <= k
    assert set(task) == set(range(tasks.num_tasks)), "no bucket is empty"
    share = len(degrees) / k
    for t in range(tasks.num_tasks):
        inside = [d for d, own in zip(degrees, task, strict=True) if own == t]
        # Without one degree's ties at either end, a bucket holds no more than its share.
        assert sum(min(inside) < d < max(inside) for d in inside) < share + 1


@given(st.lists(st.integers(0, 20), min_size=1), st.lists(st.integers(0, 30), min_size=1))
def test_exact_equals_a_search(seen, asked):
    tasks = DegreeTasks.exact(torch.tensor(seen))
    expected = [task_of(tasks, d) for d in asked]
    assert of(tasks, *asked) == [tasks.num_tasks - 1 if t is None else t for t in expected]
    assert tasks.num_tasks == len(set(seen)) + 1


def test_pairs_by_hand():
    pairs = torch.tensor([[2, 0], [1, 1], [2, 0], [0, 3]])
    exact = DegreeTasks.exact(pairs)
    assert exact.by == "pair"
    assert exact.num_tasks == 4
    assert exact(torch.tensor([[0, 3], [1, 1], [2, 0], [3, 0], [0, 2]])).tolist() == [0, 1, 2, 3, 3]
    assert exact.names() == ["0/3", "1/1", "2/0", "unseen"]
    buckets = DegreeTasks.buckets([1, 4], by="pair")
    assert buckets.num_tasks == 9
    assert buckets(torch.tensor([[0, 0], [0, 9], [3, 1], [4, 0]])).tolist() == [0, 2, 4, 6]
    assert buckets.names()[:4] == ["0/0", "0/1-3", "0/4+", "1-3/0"]
    assert DegreeTasks.quantiles(pairs, 2).by == "pair"


def test_what_a_hash_is_keyed_on():
    """Exact: the degree itself, seen or not. Buckets: the bucket. Pairs: both numbers, in their order."""
    assert DegreeTasks.exact(torch.tensor([1, 2])).key(torch.tensor([2, 77])).tolist() == [2, 77]
    assert DegreeTasks.buckets([1, 4]).key(torch.tensor([2, 77])).tolist() == [1, 2]
    codes = DegreeTasks.exact(torch.tensor([[1, 2]])).key(torch.tensor([[1, 2], [2, 1], [0, 0], [5, 2**31 - 1]]))
    assert len(set(codes.tolist())) == 4
    assert codes.min() >= 0


@pytest.mark.parametrize(
    "tasks",
    [
        DegreeTasks.exact(torch.tensor([3, 1, 4])),
        DegreeTasks.exact(torch.tensor([[3, 1], [4, 1]])),
        DegreeTasks.exact(torch.tensor([2, 5]), by="out"),
        DegreeTasks.exact(torch.tensor([], dtype=torch.long)),
        DegreeTasks.buckets([1, 5], by="pair"),
        DegreeTasks.quantiles(torch.tensor([1, 2, 3, 9]), 2),
        DegreeTasks.log2(100),
    ],
    ids=lambda tasks: f"{tasks.kind}-{tasks.by}",
)
def test_state_goes_through_json_and_back(tasks):
    again = DegreeTasks.from_state(json.loads(json.dumps(tasks.state())))
    assert again.state() == tasks.state()
    assert again.num_tasks == tasks.num_tasks == len(tasks.names())
    degree = torch.arange(12)
    degree = torch.stack([degree, degree.flip(0)], 1) if tasks.by == "pair" else degree
    assert torch.equal(again(degree), tasks(degree))


def test_degrees_of_any_number_type():
    """torch_geometric.utils.degree counts in floats unless told otherwise."""
    degree = torch.tensor([0, 2, 5, 9])
    for tasks in (DegreeTasks.exact(torch.tensor([2, 5])), DegreeTasks.log2(9)):
        for dtype in (torch.int32, torch.float32):
            assert torch.equal(tasks(degree.to(dtype)), tasks(degree))
            assert torch.equal(tasks.key(degree.to(dtype)), tasks.key(degree))
            assert DegreeTasks.exact(degree.to(dtype)).state() == DegreeTasks.exact(degree).state()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: DegreeTasks.buckets([4, 2]), r"\[4, 2\]"),
        (lambda: DegreeTasks.buckets([2, 2]), r"\[2, 2\]"),
        (lambda: DegreeTasks.buckets([0, 2]), r"\[0, 2\]"),
        (lambda: DegreeTasks.buckets([1.5, 2]), r"\[1.5, 2.0\]"),
        (lambda: DegreeTasks.buckets([1, 2], by="both"), "'both'"),
        (lambda: DegreeTasks.quantiles(torch.tensor([1, 2]), 0), "k=0"),
        (lambda: DegreeTasks.quantiles([1, 2], 2), "list"),
        (lambda: DegreeTasks.log2(-1), "-1"),
        (lambda: DegreeTasks.exact([1, 2]), r"degrees\b.*\blist\b"),
        (lambda: DegreeTasks.exact(torch.tensor([1.0, 2.5])), r"degree\b.*\b2\.5"),
        (lambda: DegreeTasks.exact(torch.tensor([1, -2])), r"degree\b.*-2\b"),
        (lambda: DegreeTasks.exact(torch.tensor([1, 2]), by="pair"), r"by='pair'.*\[2\]"),
        (lambda: DegreeTasks.exact(torch.tensor([[1, 2]]), by="in"), r"by='in'.*\[1, 2\]"),
        (lambda: DegreeTasks.exact(torch.tensor([[1], [2]])), r"\[2, 1\]"),
        (lambda: DegreeTasks.exact(torch.tensor([1, 2]), by="both"), "'both'"),
    ],
)
def test_what_cannot_be_is_refused_by_name(make, named):
    with pytest.raises(DemonetError, match=named):
        make()


@pytest.mark.parametrize("tasks", [DegreeTasks.exact(torch.tensor([2, 5])), DegreeTasks.log2(9), OpenTasks()])
def test_uninitialised_memory_is_filled(tasks):
    degree = torch.tensor([0, 2, 5, 9])
    expected = tasks(degree)
    emptied = copy.deepcopy(tasks).to("meta").to_empty(device="cpu")
    assert torch.equal(emptied(degree), expected)
    with torch.device("meta"):
        made = DegreeTasks.from_state(tasks.state())
        log2 = DegreeTasks.log2(9)
    made.load_state_dict(tasks.state_dict(), assign=True)
    assert torch.equal(made(degree), expected)
    assert torch.equal(log2.to_empty(device="cpu")(degree), DegreeTasks.log2(9)(degree))


OTHERS = [
    DegreeTasks.exact(torch.tensor([2, 3])),
    DegreeTasks.exact(torch.tensor([1, 2]), by="out"),
    DegreeTasks.buckets([1, 2]),
    DegreeTasks.buckets([1, 2], max_degree=9),
    OpenTasks(),
]


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_the_state_of_other_tasks_is_refused(other):
    tasks = DegreeTasks.exact(torch.tensor([1, 2]))
    again = DegreeTasks.exact(torch.tensor([1, 2]))
    again.load_state_dict(tasks.state_dict())
    again.load_state_dict({})  # without tasks
    with pytest.raises(DemonetError, match="1, 2, unseen"):
        other.load_state_dict(tasks.state_dict())
    with pytest.raises(DemonetError, match="1, 2, unseen"):
        again.load_state_dict(other.state_dict())
