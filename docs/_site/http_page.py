"""The reference of the HTTP interface, read off the OpenAPI document that the service publishes."""

import json
import tempfile
from pathlib import Path
from typing import Any

from polyarm.service.app import ServiceConfig, make_app

_TITLES = {"studies": "Studies", "dashboard": "Dashboard", "operations": "Operations"}
_SCHEMAS = "#/components/schemas/"


def write() -> str:
    """Return a section for every request, and one for every body."""
    with tempfile.TemporaryDirectory() as folder:
        app = make_app(ServiceConfig(storage=f"sqlite:///{Path(folder) / 'empty.db'}"))
        document = app.openapi()
        app.state.shelf.storage.close()
    tags: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["operations"])[0]
            tags.setdefault(tag, []).append(_request(method.upper(), path, operation))
    parts = [_errors(document)]
    parts += [f"## {_TITLES.get(tag, tag.title())}\n\n" + "\n\n".join(found) for tag, found in tags.items()]
    bodies = "\n\n".join(_body(name, schema) for name, schema in sorted(document["components"]["schemas"].items()))
    return "\n\n".join([*parts, f"## Bodies\n\n{bodies}"])


def _errors(document: dict[str, Any]) -> str:
    """What the codes mean, for all requests at once."""
    meanings: dict[str, list[str]] = {}
    for methods in document["paths"].values():
        for operation in methods.values():
            for code, answer in operation["responses"].items():
                if code >= "400" and answer["description"] not in meanings.setdefault(code, []):
                    meanings[code].append(answer["description"])
    rows = [f"| {code} | {_text('; '.join(meanings[code]))} |" for code in sorted(meanings)]
    return "\n".join(["| error | |", "|---|---|", *rows])


def _request(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f"### `{method} {path}`", _text(operation.get("description", operation.get("summary", "")))]
    rows = [
        f"| `{p['name']}` | {p['in']} | {_type(p['schema'])} | {_text(p.get('description', ''))} |"
        for p in operation.get("parameters", [])
        if p["in"] != "cookie" and (p["in"] != "path" or "description" in p)
    ]
    if rows:
        parts.append("\n".join(["| parameter | in | type | |", "|---|---|---|---|", *rows]))
    if "requestBody" in operation:
        parts.append(f"Takes {_content(operation['requestBody'])}.")
    good = {code: answer for code, answer in operation["responses"].items() if code < "400"}
    parts += [f"Answers {code}: {_content(answer) or 'nothing'}." for code, answer in good.items()]
    bad = [code for code in operation["responses"] if code >= "400"]
    if bad:
        parts.append(f"Errors: {', '.join(sorted(bad))}.")
    return "\n\n".join(parts)


def _content(message: dict[str, Any]) -> str:
    found = []
    for media, content in message.get("content", {}).items():
        schema = _type(content.get("schema", {}))
        found.append(schema if media == "application/json" and schema else f"`{media}`")
    return " or ".join(found)


def _body(name: str, schema: dict[str, Any]) -> str:
    parts = [f"(body-{name.lower()})=", f"### {name}", _text(schema.get("description", ""))]
    needed = schema.get("required", [])
    fields = schema.get("properties", {})
    rows = [[f"`{field}`", _type(part), _default(field in needed, part)] for field, part in fields.items()]
    head = ["field", "type", "default"]
    if any("description" in part for part in fields.values()):
        rows = [[*row, _text(part.get("description", ""))] for row, part in zip(rows, fields.values(), strict=True)]
        head.append(" ")
    if rows:
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]))
    for example in schema.get("examples", []):
        parts.append(f"```json\n{json.dumps(example, indent=2)}\n```")
    return "\n\n".join(filter(None, parts))


def _default(required: bool, part: dict[str, Any]) -> str:
    if required:
        return "required"
    return f"`{json.dumps(part['default'])}`" if part.get("default") is not None else ""


def _type(schema: dict[str, Any]) -> str:
    """A type in words, as Markdown."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_SCHEMAS)
        return f"[{name}](#body-{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part) for part in schema["anyOf"] if part.get("type") != "null"))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        parts = schema.get("prefixItems")
        return f"list of {' and '.join(map(_type, parts)) if parts else _type(schema.get('items', {})) or 'anything'}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties']) or 'anything'}"
    return str(schema.get("format", schema.get("type", "")))


def _text(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")
