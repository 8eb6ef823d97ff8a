"""Train and test a node classifier. The preset sets features, model and training."""

from demonet.data.splits import thirds
from demonet.data.synthetic import role_graph
from demonet.train import preset, train_nodes

data = role_graph()  # or demonet.data.read_graph("edges.csv", labels="labels.csv"), or demonet.data.load("brazil")
trained = train_nodes(data, thirds(data.y, seed=0, stratified=True), preset("default", "nodes"))
print(f"{trained.history.epochs} epochs, best on validation was epoch {trained.history.best_epoch + 1}")
print(f"test accuracy {trained.test_metric:.3f}")
embedding = trained.model.eval().embed(*trained.inputs)
print(f"embedding of {embedding.size(0)} nodes in {embedding.size(1)} dimensions")
