"""A process of a group that has met the others, says so in a file, and waits for ever."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch.distributed as dist

from demonet.distributed.launch import meeting_place, status

if __name__ == "__main__":
    with status():
        rank, world = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
        dist.init_process_group("gloo", init_method=meeting_place(), rank=rank, world_size=world)
        Path(f"met-{rank}").touch()
        time.sleep(3600)
