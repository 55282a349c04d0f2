"""Prints, after the timings, each step as a ratio to one linprog call of the same run: machines differ, ratios less."""

from typing import Any

#: The ratio to reach: one step costs at most 1/n of one linprog call. None: no target set.
TARGETS: dict[tuple[str, str], int | None] = {
    ("lagex", "K=7 d=2"): 300,
    ("uniform", "K=7 d=2"): 500,
    ("lagex", "K=50 d=5 r=0"): 20,
    ("uniform", "K=50 d=5 r=0"): 20,
    ("cge", "K=7 d=2"): 300,
    ("cge-wlag", "K=7 d=2"): 300,
    ("lats", "K=7 d=2"): 120,
    ("ctns", "K=7 d=2"): 120,
    ("ctns-wlag", "K=7 d=2"): 120,
    ("ptns", "K=7 d=2"): 120,
    ("lagex", "K=12 d=3"): 75,
    ("cge", "K=12 d=3"): 75,
    ("cge-wlag", "K=12 d=3"): 75,
    ("lats", "K=12 d=3"): 30,
    ("ctns", "K=12 d=3"): 30,
    ("ctns-wlag", "K=12 d=3"): 30,
    ("ptns", "K=12 d=3"): 30,
    ("uniform", "K=12 d=3"): 125,
    ("lagex", "K=200 d=10 r=0"): 10,
    ("uniform", "K=200 d=10 r=0"): 10,
    ("certex, proved", "K=7 d=2"): 25,
    ("certex, stylised", "K=7 d=2"): 25,
    ("certex, proved", "K=12 d=3"): 7,
    ("certex, stylised", "K=12 d=3"): 7,
    ("certex, proved", "K=100 d=5"): 2,
    ("certex, stylised", "K=100 d=5"): 2,
}


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    session = getattr(config, "_benchmarksession", None)
    timings: dict[tuple[str, str], float] = {}
    for bench in getattr(session, "benchmarks", []):
        info = bench.extra_info
        timings[info["what"], info["shape"]] = 1e6 * bench.stats.median / info["steps"]
    shapes = list(dict.fromkeys(shape for _, shape in timings))
    write = terminalreporter.write_line
    write("")
    write(f"{'one step of':16s} {'on':14s} {'us':>9s} {'linprog us':>11s} {'ratio':>9s} {'to reach':>9s}  growth")
    first: dict[str, float] = {}
    for (what, shape), us in timings.items():
        if what != "linprog" and ("linprog", shape) in timings:
            linprog = timings["linprog", shape]
            target = TARGETS.get((what, shape))
            growth = us / first.setdefault(what, us)
            wanted = f"1/{target}" if target else "-"
            verdict = "" if target is None else ("  ok" if linprog / us >= target else "  MISSED")
            write(
                f"{what:16s} {shape:14s} {us:9.2f} {linprog:11.1f} {f'1/{linprog / us:.0f}':>9s} {wanted:>9s}"
                f"  x{growth:.1f}{verdict}"
            )
    threads = {shape: us for (what, shape), us in timings.items() if what == "simulate"}
    if len(threads) == 2:
        one, two = threads["1 worker"], threads["2 workers"]
        write(f"simulate: two threads are {one / two:.2f} times as fast as one (to reach: 1.5)")
    if shapes:
        write("growth: cost of a step relative to the explorer's first row above")
