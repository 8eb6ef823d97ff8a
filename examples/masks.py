"""Masks as PyTorch Geometric and OGB have them: a basic model, an evaluator, and the same through an estimator."""

import torch
import torch.nn.functional as F
from torch_geometric.utils import index_to_mask

from demonet import DEMONet, DEMONetClassifier
from demonet.data import thirds
from demonet.data.synthetic import role_graph
from demonet.features import FeatureMap


class Evaluator:
    """What ``ogb.nodeproppred.Evaluator("ogbn-arxiv")`` does."""

    def eval(self, answers: dict[str, torch.Tensor]) -> dict[str, float]:
        return {"acc": float((answers["y_true"] == answers["y_pred"]).float().mean())}


data = role_graph()  # with OGB: dataset = PygNodePropPredDataset("ogbn-arxiv"); data = dataset[0]
drawn = thirds(data.y, seed=0, stratified=True)
index = {"train": drawn.train, "valid": drawn.val, "test": drawn.test}  # with OGB: dataset.get_idx_split()
for part, name in (("train", "train_mask"), ("valid", "val_mask"), ("test", "test_mask")):
    data[name] = index_to_mask(index[part], data.num_nodes)

torch.manual_seed(0)
x = FeatureMap("degree-rbf").fit_transform(data)  # with OGB: data.x
model = DEMONet(x.size(1), hidden_channels=64, num_layers=2, out_channels=int(data.y.max()) + 1, dropout=0.2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
evaluator, best = Evaluator(), {"valid": 0.0, "test": 0.0}
for _ in range(60):
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(x, data.edge_index)[data.train_mask], data.y[data.train_mask]).backward()
    optimizer.step()
    prediction = model.eval()(x, data.edge_index).argmax(1)
    accuracy = {
        part: evaluator.eval({"y_true": data.y[index[part]], "y_pred": prediction[index[part]]})["acc"]
        for part in ("valid", "test")
    }
    best = max(best, accuracy, key=lambda scores: scores["valid"])
print(f"DEMONet: validation {best['valid']:.3f}, test {best['test']:.3f}")

classifier = DEMONetClassifier(effort="quick").fit(data)  # trains on train_mask, chooses on val_mask
print(f"DEMONetClassifier: test {classifier.score(data):.3f}")  # scores on test_mask
