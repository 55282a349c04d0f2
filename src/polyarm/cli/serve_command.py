"""`polyarm serve`, `polyarm demo` and `polyarm token`: studies over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from polyarm.cli.main import JsonOption, SetOption, app
from polyarm.cli.study_command import StorageOption

token_app = typer.Typer(help="Tokens: who may use the service.", no_args_is_help=True)
app.add_typer(token_app, name="token")

PortOption = Annotated[int, typer.Option(help="Port to listen on; 0: any that is free.", min=0, max=65535)]


@app.command()
def serve(
    storage: StorageOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need a token.")] = "127.0.0.1",
    port: PortOption = 8765,
    explorer: Annotated[
        list[str] | None, typer.Option(help="Python file of an explorer of your own that studies use.", metavar="FILE")
    ] = None,
    cors_origin: Annotated[
        list[str] | None, typer.Option(help="Other host whose pages may use the API.", metavar="https://HOST")
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(help="Address of a proxy in front whose X-Forwarded headers are believed.", metavar="ADDRESS"),
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests a second of one caller.", min=1)] = 500.0,
    max_body: Annotated[int, typer.Option(help="Largest request, in bytes.", min=1_000)] = 8 * 2**20,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines, for programs.")] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Serve studies over HTTP: an API for programs, a live dashboard for people."""
    from polyarm.cli.extras import require_service

    require_service()
    from polyarm.cli.compiling import say_served_soon
    from polyarm.cli.serve_report import check_log_level, check_origins, leave, run_until_stopped, show_served
    from polyarm.rules.registry import get_explorer
    from polyarm.service.server import Server, make_config
    from polyarm.service.telemetry import set_up_logs
    from polyarm.studies.storage import storage_url

    set_up_logs(log_json, check_log_level(log_level))
    for file in explorer or []:
        get_explorer(Path(file) if file.endswith(".py") else file)
    limits = {"rate": rate, "burst": 2 * rate, "max_body": max_body}
    others = {"cors_origins": check_origins(cors_origin or ()), "trusted_proxies": tuple(trusted_proxy or ())}
    server = Server(make_config(storage_url(storage), host, **limits, **others), host, port)
    show_served(server)
    say_served_soon()
    run_until_stopped(server)
    leave(server)


@app.command()
def demo(
    instance: Annotated[
        str, typer.Argument(help="Name of an instance, or a TOML file (FILE.toml[:TABLE]).")
    ] = "router",
    speed: Annotated[float, typer.Option(help="Outcomes a second.", min=0.1)] = 50.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulated noise and of the explorer.")] = 0,
    port: PortOption = 8765,
    settings: SetOption = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Watch a simulated study live in the dashboard; nothing is kept."""
    from polyarm.cli.extras import require_service

    require_service()
    import tempfile
    import threading

    from polyarm.cli.compiling import say_served_soon
    from polyarm.cli.serve_report import leave, open_page, run_until_stopped, show_served
    from polyarm.cli.settings import parse_settings
    from polyarm.engine.plan import make_plan
    from polyarm.engine.run import split_settings
    from polyarm.environments.instances import load_instance
    from polyarm.service.demo import feed_in_background
    from polyarm.service.server import Server, make_config
    from polyarm.service.telemetry import set_up_logs

    # A looser r than the instance's own: a newcomer sees the end in about a minute.
    given = parse_settings(settings or (["r=0.05"] if instance == "router" else []))
    changes, own = split_settings(given)
    chosen = load_instance(instance).with_problem(**changes)
    make_plan("certex", chosen.problem, own)  # report mistakes before anything is served
    set_up_logs(as_json=False, level="warning")
    with tempfile.TemporaryDirectory(prefix="polyarm-demo-") as folder:
        server = Server(make_config(f"sqlite:///{folder}/demo.db", "127.0.0.1"), "127.0.0.1", port)
        show_served(server)
        say_served_soon()
        over = threading.Event()
        feeding = feed_in_background(server.url, chosen, speed, seed, own, over)
        if browser:
            open_page(server.url)
        try:
            run_until_stopped(server)
        finally:
            over.set()
            feeding.join(timeout=10.0)
    leave(server)


@token_app.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="Who or what it is for.")],
    scope: Annotated[
        str, typer.Option(help="read; write (ask and tell, too); admin (create and stop studies, too).")
    ] = "write",
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it, once: it cannot be shown again."""
    from polyarm.cli.serve_report import show_new_token
    from polyarm.service import access
    from polyarm.studies.storage import open_storage, storage_url

    place = open_storage(storage_url(storage))
    show_new_token(name, scope, access.create_token(place, name, scope), as_json)


@token_app.command("list")
def list_tokens(storage: StorageOption = None, as_json: JsonOption = False) -> None:
    """List tokens, revoked ones too."""
    from polyarm.cli.serve_report import show_tokens
    from polyarm.service import access
    from polyarm.studies.storage import open_storage, storage_url

    show_tokens(access.list_tokens(open_storage(storage_url(storage))), as_json)


@token_app.command("revoke")
def revoke_token(
    name: Annotated[str, typer.Argument(help="Name of the token.")],
    storage: StorageOption = None,
) -> None:
    """Make a token useless at once, on every server of the storage."""
    from polyarm.cli.serve_report import show_revoked
    from polyarm.service import access
    from polyarm.studies.storage import open_storage, storage_url

    access.revoke_token(open_storage(storage_url(storage)), name)
    show_revoked(name)
