"""Mini-batches with NeighborLoader: a node keeps the degree that it has in the whole graph, not in the sample."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.loader import NeighborLoader
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from demonet import DegreeTasks, DEMOConv
from demonet.data import thirds
from demonet.data.synthetic import role_graph
from demonet.degree import count_degree
from demonet.features import FeatureMap


class Net(nn.Module):
    def __init__(self, in_channels: int, num_classes: int, tasks: DegreeTasks) -> None:
        super().__init__()
        self.first = DEMOConv(in_channels, 64, tasks)
        self.second = DEMOConv(64, num_classes, tasks)

    def forward(self, x: Tensor, edge_index: Tensor, degree: Tensor) -> Tensor:
        return self.second(F.relu(self.first(x, edge_index, degree=degree)), edge_index, degree=degree)


torch.manual_seed(0)
data = role_graph()
split = thirds(data.y, seed=0, stratified=True)
data.degree = count_degree(data.edge_index, data.num_nodes)  # the loader takes it along, as it does x and y
data.x = FeatureMap("degree-rbf").fit_transform(data)
tasks = DegreeTasks.exact(data.degree)  # from the whole graph, not from the first sample
if WITH_PYG_LIB or WITH_TORCH_SPARSE:
    loader = NeighborLoader(data, [10, 10], input_nodes=split.train, batch_size=128, shuffle=True)
else:
    print("pyg-lib is not installed: every batch is the whole graph")
    data.batch_size, data.n_id = data.num_nodes, torch.arange(data.num_nodes)
    loader = [data]

net = Net(data.x.size(1), len(data.class_names), tasks)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
trains = torch.zeros(data.num_nodes, dtype=torch.bool).index_fill_(0, split.train, True)
for _ in range(40):
    for batch in loader:
        scores = net(batch.x, batch.edge_index, batch.degree)[: batch.batch_size]  # the sampled seeds come first
        counts = trains[batch.n_id[: batch.batch_size]]
        optimizer.zero_grad()
        F.cross_entropy(scores[counts], batch.y[: batch.batch_size][counts]).backward()
        optimizer.step()
prediction = net.eval()(data.x, data.edge_index, data.degree).argmax(1)
print(f"test accuracy {(prediction == data.y)[split.test].float().mean():.3f}")
