"""The house: imports point one way, randomness is always a stream, and kernels say what they do."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import polyarm

ROOT = Path(polyarm.__file__).parent

# From the ground up; a module may import from its own floor or from below.
FLOORS: list[set[str]] = [
    {"_compile", "_html", "_json", "_types", "tolerances", "errors", "figures", "files", "tables"},
    {"_structs"},
    {"polytope"},
    {"families"},
    {"problem", "claims"},
    {"model"},
    {"certify"},
    {"estimates"},
    {"round"},
    {"planner", "bounds"},
    {"stops"},
    {"rules"},
    {"environments", "problem_file", "templates"},
    {"report"},
    {"engine"},
    {"experiments", "studies"},
    {"warm"},
    {"papers", "service"},
    {"cli", "__main__"},
]
RANK = {room: rank for rank, floor in enumerate(FLOORS) for room in floor}
#: The package itself offers names from everywhere: it stands above all rooms.
FACADE = len(FLOORS)

MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}

#: What may be used of numpy.random: types, and streams made from a seed. The rest is hidden global state.
STREAMS = {"Generator", "BitGenerator", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence", "default_rng"}


def rank(module: str) -> int:
    """Return the floor of a module, given by its full name."""
    parts = module.split(".")
    return FACADE if len(parts) == 1 else RANK.get(parts[1], FACADE)


def imported(source: str) -> Iterator[str]:
    """Yield the full name of every polyarm module that a source imports, wherever in the file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "polyarm")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            if module == "polyarm":
                for alias in node.names:
                    if alias.name != "__version__":  # a constant, not a room
                        yield f"polyarm.{alias.name}" if f"polyarm.{alias.name}" in MODULES else "polyarm"
            elif module.startswith("polyarm."):
                yield module


def upward_arrows(module: str, source: str) -> list[str]:
    return [f"{module} -> {target}" for target in imported(source) if rank(target) > rank(module)]


def dotted(node: ast.AST) -> str:
    """Return a.b.c for a chain of attributes on a name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def global_randomness(source: str) -> list[str]:
    """Return every use of randomness that is not a stream made from a seed."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            name = dotted(node)
            for prefix in ("np.random.", "numpy.random."):
                if name.startswith(prefix) and name.removeprefix(prefix).split(".")[0] not in STREAMS:
                    found.append(name)
        elif isinstance(node, ast.ImportFrom) and node.module in {"numpy.random", "random"}:
            found += [f"{node.module}.{a.name}" for a in node.names if node.module == "random" or a.name not in STREAMS]
        elif isinstance(node, ast.ImportFrom) and node.module == "numpy":
            found += ["numpy.random" for a in node.names if a.name == "random"]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name == "random"]
    return found


def silent_kernels(source: str) -> list[str]:
    """Return the public kernels without a docstring."""
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        and {dotted(decorator) for decorator in node.decorator_list} & {"kernel", "inlined_kernel"}
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]


def test_every_public_name_has_one_home() -> None:
    assert polyarm.__all__ == sorted(polyarm.__all__)
    assert set(polyarm.__all__) - {"__version__", "templates"} == set(polyarm._HOMES)
    for name in polyarm.__all__:
        assert getattr(polyarm, name) is not None


def test_every_room_has_a_floor() -> None:
    rooms = {name.split(".")[1] for name in MODULES if "." in name}
    assert rooms <= set(RANK), "give the new room a place in FLOORS"
    assert len(MODULES) > 40


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    assert upward_arrows(module, MODULES[module].read_text("utf-8")) == []


@pytest.mark.parametrize("module", MODULES)
def test_randomness_is_always_a_stream(module: str) -> None:
    assert global_randomness(MODULES[module].read_text("utf-8")) == []


@pytest.mark.parametrize("module", MODULES)
def test_public_kernels_say_what_they_do(module: str) -> None:
    assert silent_kernels(MODULES[module].read_text("utf-8")) == []


def test_only_one_room_knows_sql() -> None:
    knowing = {
        module
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        if name.split(".")[0] in {"sqlalchemy", "alembic", "sqlite3", "psycopg"}
    }
    assert knowing
    assert all(module.startswith("polyarm.studies.sql.") for module in knowing), knowing


# The walls themselves: what they must catch.


@pytest.mark.parametrize(
    "line",
    [
        "from polyarm.engine.session import Session",
        "import polyarm.cli.main",
        "from polyarm import Problem",
        "from polyarm import report",
        "def f():\n    from polyarm.experiments import simulate",
    ],
)
def test_an_arrow_that_points_up_is_caught(line: str) -> None:
    assert len(upward_arrows("polyarm.polytope.lp", line)) == 1


@pytest.mark.parametrize(
    "line", ["from polyarm.tolerances import PRIMAL", "from polyarm.polytope.lp import solve_lp", "import numpy"]
)
def test_an_arrow_that_points_down_or_sideways_is_not(line: str) -> None:
    assert upward_arrows("polyarm.polytope.vertices", line) == []


@pytest.mark.parametrize(
    "line",
    [
        "np.random.normal()",
        "numpy.random.seed(3)",
        "np.random.random.x()",
        "from numpy.random import rand",
        "from numpy import random",
        "import random",
        "from random import choice",
    ],
)
def test_global_randomness_is_caught(line: str) -> None:
    assert len(set(global_randomness(line))) >= 1


def test_a_stream_is_not_caught() -> None:
    assert global_randomness("def f(rng: np.random.Generator): return rng.normal(), np.random.default_rng(3)") == []


def test_a_silent_kernel_is_caught() -> None:
    source = "@kernel\ndef loud():\n    'Says.'\n@kernel\ndef mute(): pass\n@inlined_kernel\ndef still(): pass\n"
    assert silent_kernels(source + "@kernel\ndef _private(): pass\ndef plain(): pass\n") == ["mute", "still"]
