"""Our readers of Matrix Market and MATLAB files against SciPy's, on files that SciPy wrote or the world has."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import io, sparse

from demonet.data.node_data import from_matrix_rows
from demonet.data.readers.matlab import read_variables
from demonet.data.readers.matrix_market import read_matrix_market


@st.composite
def matrices(draw):
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    dense = np.random.default_rng(draw(st.integers(0, 999))).normal(size=(rows, columns)).round(3)
    dense[np.random.default_rng(draw(st.integers(0, 999))).random((rows, columns)) < 0.6] = 0
    if draw(st.booleans()):
        dense = np.rint(dense * 9).astype(draw(st.sampled_from(["i1", "i4", "i8", "f4"])))
    if rows == columns:
        dense = draw(st.sampled_from([dense, dense + dense.T, dense - dense.T]))
    return dense


@settings(max_examples=30, deadline=None)
@given(matrices(), st.sampled_from(["coordinate", "array", "pattern"]))
def test_matrix_market(tmp_path_factory, dense, layout):
    path = tmp_path_factory.mktemp("mtx") / "m.mtx"
    if layout == "array":
        io.mmwrite(path, dense, symmetry="general")
    else:
        io.mmwrite(path, sparse.coo_array(dense), field="pattern" if layout == "pattern" else None)
    expected = io.mmread(path)
    np.testing.assert_array_equal(
        read_matrix_market(path.read_bytes(), path).toarray(), sparse.coo_array(expected).toarray()
    )


@settings(max_examples=30, deadline=None)
@given(matrices(), st.booleans())
def test_matlab(tmp_path_factory, dense, compressed):
    path = tmp_path_factory.mktemp("mat") / "m.mat"
    names = {"S": sparse.csc_array(dense), "D": dense, "text": "passed over", "cell": np.array([1, "a"], dtype=object)}
    io.savemat(path, names, do_compression=compressed)
    found, expected = read_variables(path.read_bytes(), path), io.loadmat(path)
    assert sorted(found) == ["D", "S"]
    np.testing.assert_array_equal(found["D"], expected["D"])
    np.testing.assert_array_equal(found["S"].toarray(), expected["S"].toarray())


@pytest.mark.data
@pytest.mark.parametrize("file", ["blogcatalog/BlogCatalog.mat", "flickr/Flickr.mat"])
def test_the_papers_matlab_files(paper_data, file):
    found, expected = read_variables((paper_data / file).read_bytes(), paper_data / file), io.loadmat(paper_data / file)
    assert sorted(found) == sorted(name for name in expected if not name.startswith("__"))
    for name in ("Network", "Attributes"):
        assert (found[name] != expected[name]).nnz == 0
    np.testing.assert_array_equal(found["Label"], expected["Label"])


@pytest.mark.parametrize("layout", ["to_sparse_csr", "to_sparse_coo", "to_sparse_csc"])
def test_sparse_tensors_stay_sparse(layout, monkeypatch):
    x = torch.eye(3, 5) * torch.tensor([[1.0], [2.0], [3.0]])
    given = getattr(x, layout)()
    monkeypatch.setattr(torch.Tensor, "to_dense", None)
    assert (from_matrix_rows(given, np.arange(3)).rows.toarray() == x.numpy()).all()
