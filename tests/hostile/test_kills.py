"""Killed at any write: nothing finished is lost, nothing half-written is read, the next command ends as if undisturbed.

Here at a sample of the points; ``make hostile`` kills at all of them.
"""

from __future__ import annotations

import pytest
from tests.hostile.scenes import SCENES, check, prepare, undisturbed

SAMPLE = 3


@pytest.mark.parametrize("name", SCENES)
def test_a_kill_at_any_write_loses_nothing(tmp_path, name):
    scene = SCENES[name]
    prepare(tmp_path / "start", scene)
    expected, count = undisturbed(tmp_path / "start", tmp_path / "whole", scene)
    assert count > 0
    killed = 0
    for number in range(min(SAMPLE, count)):
        point = count - number * count // min(SAMPLE, count)  # the last ones first: there most was wrong
        killed += check(tmp_path / "start", tmp_path / f"at-{point}", scene, lambda child: None, point, expected)
    assert killed == min(SAMPLE, count)
