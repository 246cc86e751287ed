"""HTTP connections, pooled per event loop, that end with their loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from toolmem.providers.exchange import AnswerTooLargeError, trace

if TYPE_CHECKING:
    import aiohttp

    _Open = tuple[aiohttp.ClientSession, AsyncGenerator[None, None]]  # the session, and what closes it

MAX_ANSWER = 32_000_000  # bytes of a model's answer; compressed, a thousandth of it may make as many


class HttpSessions:
    """One `aiohttp.ClientSession` for each event loop that asks for one.

    A session is closed by `close`, or at the latest when its loop shuts down in an orderly way (`asyncio.run`), so that
    an adapter serves several loops one after the other and leaves no socket behind. The number of connections is
    not bounded here: the cap in flight does that.
    """

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, _Open] = WeakKeyDictionary()

    async def get(self) -> aiohttp.ClientSession:
        """The running loop's session."""
        loop = asyncio.get_running_loop()
        session, _ = self._open.get(loop, (None, None))
        if session is None or session.closed:
            session = _new_session(self._base_url)
            closing = _until_shutdown(session)
            self._open[loop] = session, closing
            await anext(closing)
        return session

    async def close(self) -> None:
        """Close the running loop's session; those of other loops are closed there, if these still run."""
        here = asyncio.get_running_loop()
        for loop, (_, closing) in list(self._open.items()):
            if loop is here:
                await closing.aclose()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_closed(closing), loop))
        self._open.clear()


async def _closed(closing: AsyncGenerator[None, None]) -> None:
    await closing.aclose()


async def _until_shutdown(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    """Closes the session with itself: loops close their asynchronous generators when they shut down."""
    try:
        yield
    finally:
        await session.close()


def _new_session(base_url: str) -> aiohttp.ClientSession:
    import aiohttp

    given: dict[str, Any] = {"ssl": _tls()} if urlsplit(base_url).scheme == "https" else {}
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, **given),
        cookie_jar=aiohttp.DummyCookieJar(),
        trace_configs=[trace()],
        response_class=_bounded_response(),
        proxy=_proxy(base_url),
    )


@cache
def _bounded_response() -> type[aiohttp.ClientResponse]:
    """Reads at most MAX_ANSWER bytes of a body, as they are once decompressed, whoever asks for it."""
    import aiohttp

    class BoundedResponse(aiohttp.ClientResponse):
        async def read(self) -> bytes:
            if self._body is not None:
                return await super().read()
            streamed = self.content
            try:
                self.content = _Whole(await _at_most(streamed, MAX_ANSWER))  # type: ignore[assignment]
                return await super().read()
            except BaseException:
                self.close()
                raise
            finally:
                self.content = streamed

    return BoundedResponse


async def _at_most(content: aiohttp.StreamReader, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in content.iter_any():
        size += len(part)
        if size > most:
            raise AnswerTooLargeError(f"the answer is larger than {most:,} bytes")
        parts.append(part)
    return b"".join(parts)


class _Whole:
    """A body that has been read, for the base class to hand out."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def read(self) -> bytes:
        return self._body


@cache
def _tls() -> ssl.SSLContext:
    """The system's certificates and those of certifi: either alone is missing on some machines."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _proxy(base_url: str) -> str | None:
    """The environment's proxy for this address. aiohttp's `trust_env` would look it up in a thread for every request,
    and would refuse our Authorization header where a .netrc names the host.
    """
    from urllib.request import getproxies, proxy_bypass

    address = urlsplit(base_url)
    if proxy_bypass(address.hostname or ""):
        return None
    return getproxies().get(address.scheme)
