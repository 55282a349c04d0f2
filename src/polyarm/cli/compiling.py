"""What the commands say while kernels are compiled, always on standard error."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from polyarm._compile import CACHE_FOLDER
from polyarm.warm import JOBS, Job, News, missing, play, warm, watch_compiling

#: Seconds of compiling that go unmentioned.
_LEAST_SECONDS = 0.5


def prepare(jobs: Sequence[Job]) -> None:
    """Compile in this process what jobs need and the cache lacks, before another display begins."""
    left = missing(jobs)
    if left:
        with say_compiling(sum(job.seconds for job in left)):
            for job in left:
                play(job)


@contextmanager
def say_compiling(seconds: int | None = None) -> Iterator[None]:
    """Say that kernels are being compiled, if some are; on a terminal, which ones."""
    console = Console(stderr=True)
    often = "once per version" if CACHE_FOLDER is not None else "every time: no folder to keep them can be written"
    title = f"compiling kernels ({often}, {'a minute or so' if seconds is None else f'about {seconds} s'})"
    status = console.status(title) if console.is_terminal else None
    said = False

    def tell(kernel: str) -> None:
        nonlocal said
        if status is not None:
            status.update(f"{title}: {kernel}")
            status.start()
        elif not said:
            console.print(f"{title} ...", highlight=False, soft_wrap=True)
        said = True

    try:
        with watch_compiling(after_a_moment(tell)):
            yield
    finally:
        if status is not None:
            status.stop()


def say_served_soon() -> None:
    """Say that a server that has just started compiles first, if it does."""
    if missing([JOBS["certex"]]):
        text = "compiling kernels (once per version, a minute or so); /healthz says `ready` when that is done"
        Console(stderr=True).print(text, highlight=False, soft_wrap=True)


def after_a_moment(tell: Callable[[str], None]) -> Callable[[str], None]:
    """Report kernels only once compiling has taken a moment."""
    begun = 0.0

    def tell_later(kernel: str) -> None:
        nonlocal begun
        begun = begun or time.monotonic()
        if time.monotonic() - begun > _LEAST_SECONDS:
            tell(kernel)

    return tell_later


def show_warming(jobs: Sequence[Job], quiet: bool) -> dict[str, float]:
    """Do jobs with a bar that names what is being compiled; return the seconds that each took."""
    console = Console(stderr=True, quiet=quiet)
    seconds: dict[str, float] = {}
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("", total=len(jobs))
        under_way: dict[str, str] = {}

        def tell(news: News) -> None:
            if news.kernel is None:
                under_way.pop(news.job, None)
                seconds[news.job] = news.seconds
                console.print(f"compiled {news.job} in {news.seconds:.0f} s", highlight=False)
            else:
                under_way[news.job] = news.kernel
            doing = ", ".join(f"{job}: {kernel}" for job, kernel in under_way.items())
            bar.update(task, completed=len(seconds), description=doing)

        warm(jobs, tell)
    return seconds
