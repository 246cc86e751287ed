"""Plain functions of any framework, checked and recorded by a session."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any

from toolmem.errors import CallDenied, ToolMemError
from toolmem.session import AgentSession

log = logging.getLogger("toolmem.adapters")


def guarded(tools: Iterable[Callable[..., Any]], session: AgentSession) -> list[Callable[..., Any]]:
    """The same functions, plain or async: each call is checked before it runs, and recorded.

        session = AgentSession.start(memory)
        tools = guarded([send_email, delete_file], session)

    A denied call returns the reason, which the model then reads. Names, docstrings and signatures
    stay, so that a framework declares the tools as before.
    """
    return [_with_reasons(session.tool(function), session) for function in tools]


def _with_reasons(function: Callable[..., Any], session: AgentSession) -> Callable[..., Any]:
    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except CallDenied as denied:
            return denied.decision.reason
        finally:
            _keep(session)

    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except CallDenied as denied:
            return denied.decision.reason
        finally:
            await asyncio.to_thread(_keep, session)

    return awaited if inspect.iscoroutinefunction(function) else plain


def _keep(session: AgentSession) -> None:
    try:
        session.keep_calls()
    except ToolMemError as error:  # the call has run: its result must reach the agent
        log.error("a call was not kept: %s", error)
