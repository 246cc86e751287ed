"""Wrap plain functions, so that an AgentSession checks and records their calls."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from toolmem.adapters.base import logged
from toolmem.errors import CallDenied
from toolmem.session import AgentSession


def guarded(tools: Iterable[Callable[..., Any]], session: AgentSession) -> list[Callable[..., Any]]:
    """Wrap functions, plain or async: each call is checked before it runs, and recorded.

        session = AgentSession.start(memory)
        tools = guarded([send_email, delete_file], session)

    A denied call returns the reason for the model to read. Names, docstrings and signatures do not
    change, so that a framework declares the same tools.
    """
    return [_checked(session.tool(function), session) for function in tools]


def _checked(function: Callable[..., Any], session: AgentSession) -> Callable[..., Any]:
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
    with logged("a call was not kept"):  # it has run: its result must reach the agent
        session.keep_calls()
