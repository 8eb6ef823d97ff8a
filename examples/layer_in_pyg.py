"""Use DEMOConv in your own network, like any PyTorch Geometric layer."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from demonet import DegreeLayout, DEMOConv
from demonet.data.splits import thirds
from demonet.data.synthetic import role_graph
from demonet.features import FeatureMap


class Net(nn.Module):
    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.first = DEMOConv(in_channels, 64)
        self.second = DEMOConv(64, 64)
        self.head = nn.Linear(64, num_classes)

    def forward(self, x: Tensor, graph: DegreeLayout) -> Tensor:
        h = F.elu(self.first(x, graph))
        h = F.elu(self.second(h, graph))
        return self.head(F.dropout(h, 0.5, self.training))


torch.manual_seed(0)
data = role_graph()
split = thirds(data.y, seed=0, stratified=True)
x = FeatureMap("degree-rbf").fit_transform(data)
layout = DegreeLayout.from_edge_index(data.edge_index, data.num_nodes)
net = Net(x.size(1), len(data.class_names))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(100):
    optimizer.zero_grad()
    F.cross_entropy(net(x, layout)[split.train], data.y[split.train]).backward()
    optimizer.step()
accuracy = (net.eval()(x, layout).argmax(1) == data.y)[split.test].float().mean()
print(f"test accuracy {accuracy:.3f}")
