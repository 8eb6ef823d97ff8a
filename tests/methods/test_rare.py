"""Every method with classes of one training item, or of none: what it has not seen, it does not predict."""

import pytest
import torch
from tests.ensemble.test_tasks import places
from torch_geometric.data import Data

from demonet import methods
from demonet.data import Split
from demonet.data.synthetic import small_graphs
from demonet.train.recipes import family_of

VALIDATED, COMMON, LONE, TESTED = 0, (1, 4), 2, 3  # the classes; the first and the last have no training item
SMALL = 0.05


def problem(kind):
    if kind == "graphs":
        items = list(small_graphs(60, 0))
        y = torch.cat([graph.y for graph in items])
    else:
        items = places("regress", named=False)
        items.x = items.x.abs()
        y = (items.y[:, 0] > 0).long()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    train, val, test = order.tensor_split([len(y) // 2, 3 * len(y) // 4])
    y = torch.tensor(COMMON)[(y > 0).long()]
    y[train[0]], y[val[:2]], y[test[:3]] = LONE, VALIDATED, TESTED
    if kind == "graphs":
        data = [Data(**graph.to_dict() | {"y": own[None]}) for graph, own in zip(items, y, strict=True)]
    else:
        data = Data(x=items.x, edge_index=items.edge_index, num_nodes=len(y), y=y)
    return data, Split("mine", 0, train, val, test)


@pytest.mark.parametrize("kind", ["nodes", "graphs"])
@pytest.mark.parametrize("name", methods.names())
def test_a_method_meets_classes_without_a_training_item(name, kind):
    data, split = problem(kind)
    method, family = methods.get(name), family_of(data)
    if not method.applies(family, attributes=kind == "nodes"):
        pytest.skip("for other problems")
    fitted = method.under(methods.Conditions(family, 3)).fit(data, split)
    refitted = fitted.refit(data, split)
    for each, unseen in ((fitted, [VALIDATED, TESTED]), (refitted, [TESTED])):
        outputs = each.predict_proba()
        assert outputs.shape[1] == 5
        torch.testing.assert_close(outputs.sum(1), torch.ones(len(outputs), dtype=outputs.dtype))
        assert float(outputs[:, unseen].max()) < SMALL
        assert not set(each.predict().tolist()) & set(unseen)
