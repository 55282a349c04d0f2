"""Explorers from files: run the text of a file as a module and take the record that it defines."""

import hashlib
import linecache
import re
import sys
import tokenize
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from polyarm.errors import InvalidInput
from polyarm.rules.explorer import Explorer
from polyarm.stops.settings import CertifiedSettings

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAKE_ONE = "explorer = polyarm.python_explorer(...) or polyarm.Explorer(...)"


def read_source(path: str | Path) -> str:
    """Return the text of a Python file."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror or error}") from None
    except (SyntaxError, UnicodeDecodeError) as error:  # an unknown encoding, or not the file's
        raise InvalidInput(f"{path}: not Python source: {error}") from None


def run_source(text: str, filename: str) -> Explorer:
    """Run the text of an explorer's file and return the record that it defines, with the text in it."""
    module = ModuleType(f"polyarm_explorer_{hashlib.sha256(text.encode()).hexdigest()[:16]}")
    module.__file__ = filename
    # No file of this name need exist here, and one may be edited later: tracebacks show what was run.
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    sys.modules[module.__name__] = module  # records and settings look up the module that they are defined in
    _execute(text, module, filename)
    return _take_explorer(module, filename)._replace(source=text)


def _execute(text: str, module: ModuleType, filename: str) -> None:
    try:
        code = compile(text, filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise InvalidInput(f"{filename}: line {line}: {getattr(error, 'msg', error)}") from None
    try:
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise InvalidInput(f"{filename}: line {lines[-1]}: {what}") from error


def _take_explorer(module: ModuleType, filename: str) -> Explorer:
    """Return the module's `explorer` if it can be one."""
    if not hasattr(module, "explorer"):
        raise InvalidInput(f"{filename}: defines no variable `explorer`; end the file with {_MAKE_ONE}")
    explorer = module.explorer
    if not isinstance(explorer, Explorer):
        raise InvalidInput(
            f"{filename}: explorer: expected a polyarm.Explorer, got {type(explorer).__name__}; write {_MAKE_ONE}"
        )
    if not isinstance(explorer.name, str) or not _NAME.fullmatch(explorer.name):
        raise InvalidInput(
            f"{filename}: explorer name {explorer.name!r}: expected lowercase words joined by dashes, as in 'my-rule'"
        )
    settings = explorer.settings
    if not isinstance(settings, type) or not issubclass(settings, CertifiedSettings):
        raise InvalidInput(f"{filename}: settings: expected a class that extends RoundSettings, got {settings!r}")
    if not callable(explorer.init):
        raise InvalidInput(f"{filename}: init: expected a function of (settings, model), got {explorer.init!r}")
    if not isinstance(explorer.allocate, Mapping) or not (explorer.allocate or explorer.choose):
        raise InvalidInput(
            f"{filename}: allocate: expected a function for each class of rules, got {explorer.allocate!r}"
        )
    return explorer
