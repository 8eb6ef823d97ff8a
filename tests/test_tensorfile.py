"""Tensor files: what was written comes back, and every flipped bit is found."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from demonet import DemonetError
from demonet.tensorfile import pack_texts, read_tensors, unpack_texts, write_tensors


def test_tensors_and_facts_come_back_as_they_were(tmp_path):
    path = tmp_path / "a.safetensors"
    turned, number, empty = torch.arange(6).view(2, 3).t(), torch.tensor(1.5, dtype=torch.float64), torch.zeros(0, 3)
    facts = {"name": "Zürich 😀", "values": [0.1, None, True], "sha256": '"sha256":"' + "0" * 64 + '"'}
    write_tensors(path, "test-1", {"turned": turned, "number": number, "empty": empty}, facts)
    found = read_tensors(path, "test-2", "test-1")
    assert (found.facts, found.format) == (facts, "test-1")
    for name, tensor in (("turned", turned), ("number", number), ("empty", empty)):
        assert torch.equal(found.tensors[name], tensor)
        assert found.tensors[name].dtype == tensor.dtype


def test_every_flipped_bit_is_found(tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensors(path, "test-1", {"a": torch.arange(100.0)}, {"b": 1})
    raw = path.read_bytes()
    header = 8 + int.from_bytes(raw[:8], "little")
    for place in [*range(header), *random.Random(0).sample(range(header, len(raw)), 40), len(raw) - 1]:
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1 << place % 8]) + raw[place + 1 :])
        with pytest.raises(DemonetError):
            read_tensors(path, "test-1")
    for cut in (raw[:0], raw[:9], raw[:-1], raw + b"\0"):
        path.write_bytes(cut)
        with pytest.raises(DemonetError):
            read_tensors(path, "test-1")


def test_another_format_and_a_missing_checksum_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"a": torch.ones(2)}, path, metadata={"format": "old-1", "facts": "{}"})
    with pytest.raises(DemonetError, match="'old-1'"):
        read_tensors(path, "new-2")
    with pytest.raises(DemonetError, match="checksum"):
        read_tensors(path, "old-1")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(DemonetError, match=r"none/a: "):
        write_tensors(tmp_path / "none" / "a", "test-1", {}, {})
    with pytest.raises(DemonetError, match=r"/a: "):
        read_tensors(tmp_path / "a", "test-1")


@given(st.lists(st.text(st.characters(), max_size=4)))
def test_texts_come_back_from_their_tensors(texts):
    assert unpack_texts(pack_texts(texts)) == texts


def test_ids_are_not_in_the_header(tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensors(path, "test-1", pack_texts([f"node number {i}" for i in range(1000)]), {})
    assert int.from_bytes(path.read_bytes()[:8], "little") < 500
    assert unpack_texts(read_tensors(path, "test-1").tensors)[999] == "node number 999"


@pytest.mark.parametrize("offsets", [[0, 2], [1, 3], [0, 2, 1, 3], [], [0, 1, 3]])
def test_offsets_that_do_not_fit_are_refused(offsets):
    packed = {"bytes": torch.tensor(list("aü".encode()), dtype=torch.uint8), "offsets": torch.tensor(offsets)}
    if offsets == [0, 1, 3]:
        assert unpack_texts(packed) == ["a", "ü"]
        return
    with pytest.raises(DemonetError):
        unpack_texts(packed)
