"""Compiling ahead: everything that explorers and commands need, before anyone waits for it.

A job plays a small shipped instance through everything that an explorer can do, so that every kernel is compiled for
the arguments that real runs give it. The cache folder notes which jobs are done.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import numba
from numba.core import event
from numba.core.registry import cpu_target

from polyarm import _compile
from polyarm.engine.certificate import make_certificate, verify_certificate
from polyarm.engine.plan import Plan
from polyarm.engine.region import find_intervals, find_regions
from polyarm.engine.run import Exploration, plan_run
from polyarm.engine.session import Session
from polyarm.environments.instances import Instance, load_instance
from polyarm.errors import InvalidInput, NotYet, unknown_name
from polyarm.experiments.bounds import lower_bounds
from polyarm.experiments.plan import plan
from polyarm.rules.registry import SHIPPED

#: More would mostly compile the same small kernels at the same time.
PROCESSES = 2
#: Suffix of jobs for rewards whose variance depends on their mean: kernels are compiled once more for them.
CURVED = "-curved"
#: Explorers that run another's code, on a problem with every row known, or not.
_SAME_CODE = {"ctns-wlag": "ctns", "cge-wlag": "cge"}


class Job(NamedTuple):
    """What is compiled together: its name, about how many seconds it takes alone, and the function that triggers it."""

    name: str
    seconds: int
    play: Callable[[], object]


class News(NamedTuple):
    """What `warm` reports: a job is compiling a kernel or, if `kernel` is None, is done after so many seconds."""

    job: str
    kernel: str | None
    seconds: float


def _small_instance(curved: bool) -> Instance:
    """An instance on which every explorer stops, or does all that it ever does, within a few hundred pulls."""
    changes = {"family": "bernoulli", "reward_std": None} if curved else {}
    return load_instance("router").with_problem(r=0.2, **changes)


def _impossible_instance(curved: bool) -> Instance:
    """The same with a budget that no mix can keep, as a few pulls prove."""
    instance = _small_instance(curved)
    first, *others = [constraint.model_dump() for constraint in instance.problem.constraints]
    return instance.with_problem(constraints=[{**first, "bound": -5.0}, *others])


def _play_explorer(name: str, curved: bool) -> None:
    """Play an explorer of the paper by both drivers; the certified stop is compiled with `certex`."""
    exploration = Exploration(*plan_run(_small_instance(curved), name, {}), seed=0)
    exploration.advance_to(40)
    exploration.record()
    _converse(Session(exploration.session.plan, seed=0))


def _play_certex(curved: bool) -> None:
    """Play `certex` with each certificate to a mix and to a proof that there is none, and verify what it proved."""
    for certificate in ("averaged", "pooled"):
        for instance in (_small_instance(curved), _impossible_instance(curved)):
            settings = {"certificate": certificate}
            exploration = Exploration(*plan_run(instance, "certex", settings, allow_infeasible=True), seed=0)
            exploration.advance_to(5_000)
            exploration.record()
            verify_certificate(make_certificate(exploration.session).document)
        _converse(Session(plan_run(_small_instance(curved), "certex", settings)[1], seed=0))


def _converse(session: Session) -> None:
    """Ask and tell, save and restore, and ask for all that a dashboard shows."""
    costs = [constraint.bound for constraint in session.problem.constraints if not constraint.known]
    for arm in range(40):
        if session.stopped:
            break
        session.tell(session.ask(), float(arm % 2), costs)
    if not session.stopped:
        session.ask_batch()
    Session.from_state_dict(session.state_dict())
    session.expected_stop()
    find_regions(session.problem, find_intervals(session))
    with suppress(NotYet):  # too early for this explorer: nothing that it would call is left out
        session.recommend()


def _play_bounds(curved: bool) -> None:
    lower_bounds(_small_instance(curved))


def _play_plan() -> None:
    plan(_small_instance(False), r=0.2, delta=0.1)


def _make_jobs() -> dict[str, Job]:
    """Return the jobs by name, in the order in which they are done: those that share most with others first."""
    explorers = {"uniform": 15, "lagex": 14, "lats": 12, "ctns": 9, "ptns": 8, "cge": 7}
    jobs = [Job("certex", 35, partial(_play_certex, False))]
    jobs += [Job(name, seconds, partial(_play_explorer, name, False)) for name, seconds in explorers.items()]
    jobs += [Job("bound", 12, partial(_play_bounds, False)), Job("plan", 3, _play_plan)]
    jobs += [Job(f"certex{CURVED}", 10, partial(_play_certex, True))]
    jobs += [Job(f"{name}{CURVED}", 7, partial(_play_explorer, name, True)) for name in explorers]
    jobs += [Job(f"bound{CURVED}", 5, partial(_play_bounds, True))]
    return {job.name: job for job in jobs}


JOBS = _make_jobs()


def jobs_for(plan: Plan) -> list[Job]:
    """Return the jobs that compile what a plan will run; for a user's own explorer, only that of its stop."""
    names = [_SAME_CODE.get(plan.explorer.name, plan.explorer.name)] if plan.explorer.name in SHIPPED else []
    if plan.settings.stops_certified() and "certex" not in names:
        names.append("certex")
    return [JOBS[name + CURVED * (plan.model.family.curved is not None)] for name in names]


def find_jobs(names: Iterable[str]) -> list[Job]:
    """Return jobs by name."""
    for name in names:
        if name not in JOBS:
            raise unknown_name("job", name, JOBS)
    return [JOBS[name] for name in names]


def missing(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs that are not noted as done; none if compilation is off."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return []
    notes = _notes()
    return [job for job in jobs if notes is None or not (notes / job.name).exists()]


def play(job: Job) -> None:
    """Do a job in this process, and note that it is done."""
    job.play()
    notes = _notes()
    if notes is not None:
        notes.mkdir(parents=True, exist_ok=True)
        (notes / job.name).touch()


@cache
def _notes() -> Path | None:
    """The folder of finished jobs, named by all that Numba checks before it trusts its cache; None without a cache."""
    if _compile.CACHE_FOLDER is None:
        return None
    root = Path(__file__).parent
    sources = [root / path for path in _compile.kernel_sources()]
    stamps = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in sources]
    machine = cpu_target.target_context.codegen().magic_tuple()
    known = sha256(repr((stamps, machine, numba.__version__, sys.version)).encode()).hexdigest()[:16]
    return Path(_compile.CACHE_FOLDER) / f"warm-{known}"


@contextmanager
def watch_compiling(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` with the name of each kernel that is not cached, as its compiling begins."""
    with event.install_listener("numba:compile", _Listener(tell)):
        yield


class _Listener(event.Listener):
    """Passes on the names of polyarm's kernels, but not of Numba's own helpers."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def on_start(self, event: Any) -> None:
        """Tell the kernel's name."""
        function = event.data["dispatcher"].py_func
        if (function.__module__ or "").startswith("polyarm."):
            self._tell(function.__name__)

    def on_end(self, event: Any) -> None:
        """Do nothing: the next kernel is told as it begins."""


def warm(jobs: Sequence[Job], tell: Callable[[News], None]) -> None:
    """Do jobs in two processes at once; each takes the next job when it is free. `tell` is called with what they do.

    Raises when the cache folder cannot be written.
    """
    if _compile.CACHE_FOLDER is None:
        raise InvalidInput(
            f"no folder for compiled kernels can be written; tried {_compile.describe_folders()}: set NUMBA_CACHE_DIR "
            "to one that can"
        )
    waiting: SimpleQueue[Job] = SimpleQueue()
    for job in jobs:
        waiting.put(job)
    failures: list[str] = []
    workers = [
        threading.Thread(target=_employ, args=(waiting, tell, failures), daemon=True)
        for _ in range(min(PROCESSES, len(jobs)))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise InvalidInput(failures[0])


def _employ(waiting: "SimpleQueue[Job]", tell: Callable[[News], None], failures: list[str]) -> None:
    """Hand jobs to one process, one after the other, until none waits or the process fails."""
    command = [sys.executable, "-c", "from polyarm.warm import work; work()"]
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            while not failures:
                try:
                    job = waiting.get_nowait()
                except Empty:
                    break
                if not _hand_out(job, process, tell):
                    failures.append(f"compiling for {job.name} failed: the process ended with code {process.wait()}")
            with suppress(BrokenPipeError):  # it has ended already
                process.communicate()
    except Exception as error:  # noqa: BLE001  (in a thread: whatever is wrong, it must not look like success)
        failures.append(f"compiling failed: {error}")


def _hand_out(job: Job, process: "subprocess.Popen[str]", tell: Callable[[News], None]) -> bool:
    """Let a process do a job; False if it ends before."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        print(job.name, file=process.stdin, flush=True)
    except BrokenPipeError:
        return False
    for line in process.stdout:
        news = News(**json.loads(line))
        tell(news)
        if news.kernel is None:
            return True
    return False


def work() -> None:
    """Do the jobs whose names come on standard input, and say on standard output what is being compiled."""
    try:
        for line in sys.stdin:
            job, begun = JOBS[line.strip()], time.monotonic()

            def say(kernel: str | None, name: str = job.name, since: float = begun) -> None:
                print(json.dumps(News(name, kernel, time.monotonic() - since)._asdict()), flush=True)

            with watch_compiling(say):
                play(job)
            say(None)
    except KeyboardInterrupt:
        sys.exit(130)
