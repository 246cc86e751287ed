"""The OpenAPI document as one page for people: plain HTML, no scripts, nothing loaded from anywhere."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1c; }
h2 { margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1rem; }
code, pre { font: 14px/1.45 ui-monospace, monospace; background: #f4f4f2; }
pre { padding: .8rem; overflow-x: auto; white-space: pre-wrap; }
table { border-collapse: collapse; } th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #ddd; } code, pre { background: #242424; } }
"""


def page(document: dict[str, Any], address: str) -> str:
    """`address`: under which the reader reached the service; his commands to copy begin with it."""
    info = document["info"]
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    contents = "".join(
        f'<li><a href="#{escape(each["operationId"])}"><code>{method.upper()} {escape(path)}</code></a> '
        f"{escape(each['summary'])}</li>"
        for path, method, each in operations
    )
    parts = [_operation(document, address, *each) for each in operations]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>{_text(info['description'])}"
        f'<p>The same as <a href="openapi.json">OpenAPI document</a>.</p><ul>{contents}</ul>'
        f"{''.join(parts)}</body></html>"
    )


def _operation(document: dict[str, Any], address: str, path: str, method: str, operation: dict[str, Any]) -> str:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    parts = [
        f'<h2 id="{escape(operation["operationId"])}"><code>{method.upper()} {escape(path)}</code></h2>',
        f"<p>{escape(operation['summary'])}</p>",
        _text(operation.get("description", "")),
        _arguments(document, body.get("schema", {})),
        _answers(operation["responses"]),
    ]
    requests = body.get("examples", {})
    answers = operation["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("examples", {})
    for name, example in requests.items():
        parts.append(f"<h3>{escape(example['summary'])}</h3>{_curl(address + path, example['value'])}")
        if name in answers:
            parts.append(f"<details><summary>Answer</summary>{_json(answers[name]['value'])}</details>")
    return "".join(parts)


def _arguments(document: dict[str, Any], schema: dict[str, Any]) -> str:
    reference = schema.get("$ref", "")
    if not reference:
        return ""
    model = document["components"]["schemas"][reference.rpartition("/")[2]]
    rows = []
    for name, field in model["properties"].items():
        types = field["type"] if isinstance(field["type"], list) else [field["type"]]
        kind = " or ".join(each for each in types if each != "null")
        if "enum" in field:
            kind += ": " + ", ".join(str(each) for each in field["enum"] if each is not None)
        needed = "required" if name in model["required"] else ""
        described = escape(field.get("description", ""))
        rows.append(f"<tr><td><code>{escape(name)}</code></td><td>{escape(kind)}</td><td>{needed}</td>")
        rows.append(f"<td>{described}</td></tr>")
    return f"<table><tr><th>argument</th><th>type</th><th></th><th></th></tr>{''.join(rows)}</table>"


def _answers(responses: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{escape(status)}</td><td>{_inline(answer['description'])}</td></tr>"
        for status, answer in sorted(responses.items())
    )
    return f"<details><summary>Status codes</summary><table>{rows}</table></details>"


def _curl(url: str, value: Any) -> str:
    data = json.dumps(value, ensure_ascii=False).replace("'", "'\\''")
    command = f"curl -X POST {url} \\\n  -H 'Content-Type: application/json' \\\n  -d '{data}'"
    return f"<pre>{escape(command)}</pre>"


def _json(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, ensure_ascii=False, indent=2))}</pre>"


def _text(text: str) -> str:
    """Paragraphs and tables of Markdown, which is all that the document's descriptions hold."""
    return "".join(_block(block) for block in text.strip().split("\n\n") if block)


def _block(block: str) -> str:
    lines = block.splitlines()
    if not lines[0].startswith("|"):
        return f"<p>{_inline(' '.join(lines))}</p>"
    rows = [[_inline(cell.strip()) for cell in line.strip("|").split("|")] for line in lines if "|---" not in line]
    cells = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{cells}</table>"


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
