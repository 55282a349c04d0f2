"""Parts of polyarm that are installed on request."""

from importlib.util import find_spec

from polyarm.errors import InvalidInput


def require_service() -> None:
    """Raise, in words, when the packages of the service are missing."""
    missing = [name for name in ("fastapi", "uvicorn", "prometheus_client", "httpx") if find_spec(name) is None]
    if missing:
        raise InvalidInput(f"the service needs {', '.join(missing)}: pip install 'polyarm[service]'")
