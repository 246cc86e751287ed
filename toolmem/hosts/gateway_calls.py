"""A call that a gateway shows before it runs it: `--interceptor before:exec:...` of Docker's MCP gateway.

The gateway writes `{"method": "tools/call", "params": {...}}` to standard input. What stands on standard output is the
call's result, and the call is not made; nothing lets it run.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from toolmem.hosts.event_stores import EventStores

log = logging.getLogger("toolmem.proxy")

_UNCHECKED = "toolmem: not run. The call cannot be checked (--on-error closed)."


def answer_to(message: str, *, store: str = "", on_error: Literal["open", "closed"] = "open") -> str:
    """The result that stands for a call that is not to run, as JSON; "" lets it run. Never raises."""
    try:
        reason = _reason(message, store, on_error)
    except Exception as error:
        log.warning("a call cannot be checked (%s: %s)", type(error).__name__, str(error)[:300])
        reason = _UNCHECKED if on_error == "closed" else ""
    return json.dumps({"content": [{"type": "text", "text": reason}], "isError": True}) if reason else ""


def _reason(message: str, named: str, on_error: Literal["open", "closed"]) -> str:
    from toolmem.hosts.event_stores import open_stores, with_kept_rules
    from toolmem.readers.written_arguments import opened_arguments

    params = _object(_object(json.loads(message)).get("params"))
    tool, arguments = params.get("name"), opened_arguments(params.get("arguments"))
    if not isinstance(tool, str) or not tool.strip() or _switched_off():
        return ""
    stores = open_stores(os.getcwd(), named)
    try:
        return with_kept_rules(
            stores,
            lambda found: _decided(found, named, on_error, tool, arguments),
            lambda damage: log.warning("%s", str(damage)),
        )[0]
    finally:
        stores.close()


def _decided(stores: EventStores, named: str, on_error: Literal["open", "closed"], tool: str, arguments: Any) -> str:
    from toolmem.engine import before, rules_on
    from toolmem.guard.tool_classes import scopes_of

    if stores.main is None or (named and stores.trouble):
        raise OSError(stores.trouble or "no store can be opened")
    call = {"tool_name": tool, "input": {} if arguments is None else arguments}
    classes = [each.lstrip("@") for each in scopes_of(tool, None, arguments)]
    demands = [] if stores.further is None else rules_on(stores.further, tool, arguments)
    decision = before(stores.main, call, force=None, on_error=on_error, classes=classes, demands=demands)
    return decision.reason if decision.stops else ""


def _switched_off() -> bool:
    if not os.environ.get("TOOLMEM_GUARD", "").strip():
        return False
    from toolmem.config.environment import guard_switched_off, unknown_guard_switch
    from toolmem.hosts.hook_log import write_line

    if told := unknown_guard_switch(os.environ):
        with suppress(OSError):
            write_line(f"gateway {told}")
    return guard_switched_off(os.environ)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
