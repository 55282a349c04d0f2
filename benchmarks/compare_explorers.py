"""Explorer x instance: samples, feasible rate, correct rate, as a Markdown table for docs/comparison.md.

    python benchmarks/compare_explorers.py [SEEDS] [OUT.md]

Every explorer stops by its own rule first, then all of them by the certified rule (proved thresholds), where they
differ in nothing but how they choose arms.
"""

import sys
from pathlib import Path
from typing import Any

from polyarm import simulate
from polyarm.cli.report import progress_bar

#: The paper's instances with tolerances that a certificate can reach in seconds; imdb at its declared noise.
CELLS = (("setup1-hard", 0.2), ("setup1-easy", 0.2), ("setup2-easy", 0.1), ("setup2-hard", 0.1), ("imdb", 0.3))
OWN = ("lagex", "lats", "ctns-wlag", "cge-wlag", "ptns", "uniform")
HORIZON = 400_000


def compare(explorers: tuple[str, ...], seeds: int, settings: dict[str, Any], title: str) -> list[str]:
    """Return the rows of one table."""
    lines = ["| explorer | " + " | ".join(f"{name}, r = {r:g}" for name, r in CELLS) + " |"]
    lines.append("|---" * (len(CELLS) + 1) + "|")
    for explorer in explorers:
        cells = []
        for name, r in CELLS:
            own = {} if explorer == "certex" else settings
            with progress_bar(f"{title}: {explorer} on {name}", quiet=False) as progress:
                result = simulate(
                    name, explorer, seeds=seeds, horizon=HORIZON, settings={**own, "r": r}, progress=progress
                )
            row = result.table()[0]
            mean = "horizon" if row["mean_stop"] is None else f"{row['mean_stop']:,.0f}"
            cells.append(f"{mean}; {row['feasible_rate']:.0%}; {row['correct_rate']:.0%}")
        lines.append(f"| {explorer} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Write both tables."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    target = Path(sys.argv[2] if len(sys.argv) > 2 else "docs/comparison.md")
    own = compare(("certex", *OWN), seeds, {}, "own rule")
    certified = compare(("certex", *OWN), seeds, {"stopping": "certified"}, "certified rule")
    target.write_text(
        "# Explorers compared\n\n"
        f"Written by `benchmarks/compare_explorers.py`, {seeds} seeds each. In each cell: mean pulls until the stop; "
        "share of runs whose mix truly satisfies the constraints; share that is also within r of the best.\n\n"
        "Each explorer by its own stopping rule (preset corrected; only certex proves its answer):\n\n"
        + "\n".join(own)
        + "\n\nAll by the certified rule with proved thresholds (`--set stopping=certified`): equal guarantees, so "
        "that sampling rules can be compared.\n\n" + "\n".join(certified) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
