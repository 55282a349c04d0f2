"""Measure what compiling costs with nothing cached: python -m benchmarks.measure_compiling [NAME ...]

Plays the jobs of `polyarm warm` (all, or those named), one after the other, in a fresh process with an empty cache, and
prints the seconds that each kernel called from Python took with all that it calls. Seconds are the processor's, not the
clock's; beside them stands their ratio to one fixed kernel that is compiled in the same process: machines differ,
ratios less. A kernel that several jobs share is counted where it comes first.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from typing import Any

import numba
import numpy as np
from numba.core import event

#: Entry points that take less than this many times the reference are summed up in one line.
_WORTH_A_LINE = 3.0


def reference(matrix: Any, values: Any) -> float:
    """Solve a linear system by elimination with pivoting; never change it, the ratios are to this."""
    n = matrix.shape[0]
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[best, k]):
                best = i
        for j in range(n):
            matrix[k, j], matrix[best, j] = matrix[best, j], matrix[k, j]
        values[k], values[best] = values[best], values[k]
        for i in range(k + 1, n):
            share = matrix[i, k] / matrix[k, k]
            for j in range(k, n):
                matrix[i, j] -= share * matrix[k, j]
            values[i] -= share * values[k]
    total = 0.0
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            values[i] -= matrix[i, j] * values[j]
        values[i] /= matrix[i, i]
        total += values[i]
    return total


def compile_reference() -> float:
    """Return the seconds that the reference takes to compile."""
    begun = time.process_time()
    numba.njit(error_model="numpy")(reference)(np.eye(3), np.ones(3))
    return time.process_time() - begun


class Stopwatch(event.Listener):
    """Adds up the seconds of the kernels that Python calls, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._depth = 0
        self._begun = 0.0

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._begun = time.process_time()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds[event.data["dispatcher"].py_func.__name__] += time.process_time() - self._begun


def measure(names: list[str]) -> None:
    """Play the jobs in this process, whose cache must be empty, and print what they took."""
    from polyarm.warm import JOBS, find_jobs  # noqa: PLC0415  (after the folder of the cache was chosen)

    jobs = find_jobs(names or JOBS)
    compile_reference()  # the first one wakes the compiler
    references = [compile_reference() for _ in range(3)]
    taken: dict[str, dict[str, float]] = {}
    for job in jobs:
        watch = Stopwatch()
        with event.install_listener("numba:compile", watch):
            job.play()
        taken[job.name] = dict(watch.seconds)
    references += [compile_reference() for _ in range(3)]
    unit = float(np.median(references))
    print(f"{'compiled for':18s} {'entry point':24s} {'s':>7s} {'ratio':>7s}")
    print(f"{'reference':18s} {'':24s} {unit:7.2f} {1:7.1f}")
    for name, kernels in taken.items():
        print(f"{name:18s} {'all':24s} {sum(kernels.values()):7.2f} {sum(kernels.values()) / unit:7.1f}")
        large = {kernel: seconds for kernel, seconds in kernels.items() if seconds >= _WORTH_A_LINE * unit}
        for kernel, seconds in sorted(large.items(), key=lambda item: -item[1]):
            print(f"{'':18s} {kernel:24s} {seconds:7.2f} {seconds / unit:7.1f}")
        others = [seconds for kernel, seconds in kernels.items() if kernel not in large]
        if others:
            print(f"{'':18s} {f'{len(others)} others':24s} {sum(others):7.2f} {sum(others) / unit:7.1f}")


def main(names: list[str]) -> int:
    """Measure in a process of its own, with a cache that did not exist before."""
    with tempfile.TemporaryDirectory() as folder:
        code = "import sys; from benchmarks.measure_compiling import measure; measure(sys.argv[1:])"
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        return subprocess.run([sys.executable, "-c", code, *names], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
