"""What `polyarm serve`, `demo` and `token` print."""

import os
import re
import sys
import webbrowser
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polyarm.cli.report import print_json, show_rows
from polyarm.errors import InvalidInput, unknown_name

if TYPE_CHECKING:
    from polyarm.service.server import Server

_LEVELS = ("debug", "info", "warning", "error")


def check_log_level(level: str) -> str:
    """Return a level of logging, or raise."""
    if level not in _LEVELS:
        raise unknown_name("log level", level, _LEVELS)
    return level


def show_served(server: "Server") -> None:
    """Say where a server is, and who can reach it; on standard error, as its log."""
    print(f"polyarm serves {server.storage.address} at {server.url} (Ctrl-C stops it)", file=sys.stderr)
    if server.open:
        print(
            "there are no tokens: only this machine can reach the server, and it may do everything; "
            "`polyarm token create NAME` makes a token",
            file=sys.stderr,
        )
    sys.stderr.flush()


def run_until_stopped(server: "Server") -> None:
    """Run a server until a signal stops it, which is not an error; requests under way are finished first."""
    try:
        server.run()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)


def leave(server: "Server") -> None:
    """End the program: an interpreter cannot end by itself while a compiler runs."""
    if server.is_compiling:
        sys.stderr.flush()
        os._exit(0)


def check_origins(origins: Sequence[str]) -> tuple[str, ...]:
    """Return hosts whose pages may use the API, or raise when one is not written as browsers write it."""
    for origin in origins:
        if re.fullmatch(r"https?://[^/*\s]+", origin) is None:
            raise InvalidInput(f"--cors-origin: expected https://HOST[:PORT] without a path, got {origin!r}")
    return tuple(origins)


def open_page(url: str) -> None:
    """Open a page in a browser, if there is one."""
    try:
        webbrowser.open(url)
    except webbrowser.Error as error:
        print(f"no browser was found ({error}): open {url}", file=sys.stderr)


def show_new_token(name: str, scope: str, secret: str, as_json: bool) -> None:
    """Print a token that was just made."""
    if as_json:
        print_json({"name": name, "scope": scope, "token": secret})
    else:
        print(secret)
        print(f"token {name!r} ({scope}): keep it, it is not shown again", file=sys.stderr)


def show_tokens(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """List tokens."""
    if not as_json:
        rows = [
            {
                "name": row["name"],
                "scopes": ", ".join(row["scopes"]),
                "created": row["created_at"],
                "revoked": row["revoked_at"] or "",
            }
            for row in rows
        ]
    show_rows("tokens", rows, as_json, without="no token yet; `polyarm token create NAME` makes one")


def show_revoked(name: str) -> None:
    """Report a token that was just revoked."""
    print(f"token {name!r} is revoked; whoever signed in with it is signed out")
