"""The reference of the command line, read off the commands themselves."""

import re
from typing import Any

import typer

from polyarm.cli.main import app


def write() -> str:
    """Return a section for every command, those of groups included."""
    return "\n\n".join(_sections(typer.main.get_command(app), "polyarm"))


def _sections(command: Any, name: str) -> list[str]:
    parts = []
    for word, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            full = f"{name} {word}"
            parts += [f"## `{full}`", _describe(child, full), *_sections(child, full)]
    return parts


def _describe(command: Any, name: str) -> str:
    text = _plain(command.help or "")
    if hasattr(command, "commands"):
        return text
    context = typer.Context(command, info_name=name)
    rows, usage = [], [name]
    for param in command.params:
        if param.param_type_name == "argument":
            (word,) = param.get_usage_pieces(context)
            usage.append(word)
            rows.append(f"| `{word}` | {_plain(param.help)} | |")
    for param in command.params:
        record = param.get_help_record(context) if param.param_type_name == "option" else None
        if record is not None:  # None: a hidden option
            words, remark = _split(record[1])
            rows.append(f"| `{record[0]}` | {_plain(words)} | {_plain(remark)} |")
    table = "\n".join(["| | | |", "|---|---|---|", *rows]) if rows else ""
    return f"{text}\n\n```text\n{' '.join([*usage, '[OPTIONS]'])}\n```\n\n{table}"


def _split(text: str) -> tuple[str, str]:
    """The words of a help text, and the remark in brackets behind them: default, required, environment."""
    found = re.search(r"\s*\[((?:default|required|env var|x>|x<|\d).*)\]$", text)
    return (text[: found.start()], found.group(1)) if found else (text, "")


def _plain(text: str | None) -> str:
    """Help on one line, as Markdown in a table."""
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "\\<")
