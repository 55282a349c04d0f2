"""How kernels are compiled: one decorator, and one cache folder per version of the sources.

Numba's cache notices an edit in a kernel's own file but not in the kernels it calls, so compiled code
is kept in a folder named by a hash of every source file that can end up inside a kernel.
"""

import fcntl
import getpass
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numba
from numba.core.compiler_lock import global_compiler_lock

F = TypeVar("F", bound=Callable[..., Any])

_ROOT = Path(__file__).parent
#: LLVM's first level, as Numba names it.
_LIGHT = type(numba.config.OPT)(1)  # type: ignore[attr-defined]

#: Rooms that call kernels but whose code is never part of one.
_ABOVE_KERNELS = {
    "cli",
    "__main__.py",
    "papers",
    "report",
    "claims.py",
    "experiments",
    "service",
    "studies",
    "templates.py",
    "warm.py",
    "engine",
    "figures.py",
    "problem_file.py",
    "tables.py",
    "files.py",
    "errors.py",
    "_json.py",
    "_html.py",
    "__init__.py",
}
#: The exceptions in these rooms.
_STILL_KERNELS = {"engine/loop.py"}


def _source_hash() -> str:
    digest = hashlib.sha256()
    for path in kernel_sources():
        digest.update(str(path).encode())
        digest.update((_ROOT / path).read_bytes())
    return digest.hexdigest()[:16]


def kernel_sources() -> list[Path]:
    """The files whose code or constants can end up inside a kernel, relative to the package."""
    files = sorted(path.relative_to(_ROOT) for path in _ROOT.rglob("*.py"))
    return [path for path in files if path.parts[0] not in _ABOVE_KERNELS or path.as_posix() in _STILL_KERNELS]


def _candidate_folders() -> list[Path]:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return [Path(chosen)]
    candidates = []
    cache_home = os.environ.get("XDG_CACHE_HOME")
    try:
        candidates.append((Path(cache_home) if cache_home else Path.home() / ".cache") / "polyarm")
        candidates.append(Path(tempfile.gettempdir()) / f"polyarm-{getpass.getuser()}")
    except (RuntimeError, KeyError, OSError):
        pass  # a user without a home or a name: use what was found so far
    return candidates


def _cache_folder() -> str | None:
    """Return a writable folder for compiled kernels, or None when the machine offers none."""
    for parent in _candidate_folders():
        folder = parent / f"kernels-{_source_hash()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
        except OSError:
            continue
    return None


CACHE_FOLDER = _cache_folder()


def describe_folders() -> str:
    """Name the folders in which compiled kernels could be kept, if they can be written."""
    return " and ".join(str(folder) for folder in _candidate_folders()) or "none, as the user has no home"


def kernel(function: F) -> F:
    """Compile a function with Numba: without the GIL, IEEE division, and cached across processes if it is polyarm's."""
    return _compile(function, "never")


def inlined_kernel(function: F) -> F:
    """Compile a small function into its callers.

    Passing a NamedTuple of arrays to a compiled function counts references on every array in it, some 100 ns
    a call; inlining removes that.
    """
    return _compile(function, "always")


def uncached_kernel(function: F) -> F:
    """Compile a kernel once more, for this process only: for arguments of classes that other processes may not have.

    The cache names the classes of all that it holds. One that cannot be imported elsewhere, because it comes from a
    user's file, would keep every process from reading the rest; and after an edit of that file it would be stale.
    """
    plain = getattr(function, "py_func", function)
    return cast(F, numba.njit(nogil=True, error_model="numpy")(plain))


def _compile(function: F, inline: Literal["never", "always"]) -> F:
    # Kernels of users' files have neither a file that must exist nor classes that others know: see uncached_kernel.
    caching = CACHE_FOLDER is not None and function.__module__.startswith("polyarm.")
    with _configured(CACHE_DIR=CACHE_FOLDER):
        made: Any = numba.njit(cache=caching, nogil=True, error_model="numpy", inline=inline)(function)
    if caching and hasattr(made, "_cache"):
        _save_one_at_a_time(made._cache)
    return cast(F, _optimise_lightly(made))


def _save_one_at_a_time(kept: Any) -> None:
    """Let no two processes change a kernel's index at once: an entry would be lost, or lead to the other's code."""
    save = kept.save_overload

    def save_alone(signature: Any, compiled: Any) -> None:
        folder = Path(cast(str, CACHE_FOLDER))
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("wb") as lock:
            with suppress(OSError):  # a file system without locks: nothing is worse than it would be without ours
                fcntl.flock(lock, fcntl.LOCK_EX)
            save(signature, compiled)

    kept.save_overload = save_alone


@contextmanager
def _configured(**settings: Any) -> Iterator[None]:
    """Change Numba's configuration for a moment: other users of Numba in this process keep their own."""
    config: Any = numba.config  # its attributes are made at run time
    outer = {name: getattr(config, name) for name in settings}
    try:
        for name, value in settings.items():
            setattr(config, name, outer[name] if value is None else value)
        yield
    finally:
        for name, value in outer.items():
            setattr(config, name, value)


def _optimise_lightly(dispatcher: Any) -> Any:
    """Compile at LLVM's first level, which takes a fifth less time and makes no step slower; NUMBA_OPT wins."""
    if "NUMBA_OPT" in os.environ or not hasattr(dispatcher, "compile"):
        return dispatcher
    compile_fully = dispatcher.compile

    def compile_lightly(signature: Any) -> Any:
        with global_compiler_lock, _configured(OPT=_LIGHT):
            return compile_fully(signature)

    dispatcher.compile = compile_lightly
    return dispatcher
