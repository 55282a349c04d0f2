"""Every condition of the proof is watched by some check: dropped in the library itself, it is noticed.

`oracle.mutations` replaces one part of the library at a time, in a process of its own in which kernels are interpreted.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from oracle.mutations import MUTATIONS

TESTS = Path(__file__).parents[1]


@cache
def noticed() -> dict[str, str | None]:
    """Which check failed first under each mutation."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "oracle.mutations"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


def test_the_library_as_it_is_passes_every_check() -> None:
    assert noticed()["none"] is None


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_dropped_condition_is_noticed(mutation: str) -> None:
    assert noticed()[mutation] is not None, "no check would notice"
