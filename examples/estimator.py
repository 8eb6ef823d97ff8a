"""Use the scikit-learn estimator: fit, score, embed, search, save, load, explain."""

import networkx as nx
from sklearn.model_selection import GridSearchCV

from demonet import DEMONetClassifier

club = nx.karate_club_graph()  # or "edges.csv", a PyG Data, a SciPy matrix
people, side = list(club), [club.nodes[person]["club"] for person in club]

classifier = DEMONetClassifier(graph=club, model="network", epochs=100).fit(people[::2], side[::2])
print(f"accuracy on the other half {classifier.score(people[1::2], side[1::2]):.3f}")
print(f"embedding of {len(classifier.transform())} people in {classifier.transform().shape[1]} dimensions")

search = GridSearchCV(
    DEMONetClassifier(club, model="network", epochs=20), {"scheme": ["weight", "hash", "smooth"]}, scoring="f1_macro"
)
print(f"best scheme {search.fit(people, side).best_params_['scheme']}, macro-F1 {search.best_score_:.3f}")

classifier.save("club.safetensors")  # weights and settings, no pickle; the graph is not included
loaded = DEMONetClassifier.load("club.safetensors", graph=club)
why = loaded.explain(8)
print(f"person 8: {why.prediction} ({why.confidence:.3f}), most of all because of {why.reasons[0].words}")
print(f"score {why.network.score:.2f}, of which the degree-specific weights contribute {why.network.own:.2f}")
