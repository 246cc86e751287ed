"""When a request is sent again, and what a failed connection means.

Again, up to `retries` times, with pauses that grow from a tenth of a second: whatever never left this machine (nothing
listens, no free connection); and what does no more when it is done twice (reads, calls and rules with ids of their own)
after a cut connection, or while the store cannot serve. Nothing is sent again after a time-out.

What is raised in the end is the last attempt's failure; where an earlier one may have been carried out, it says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from toolmem.errors import RequestError, ServiceError, ServiceUnreachable, StoreError

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from toolmem.client.requests import ServiceRequest

logger = logging.getLogger("toolmem.client")

FIRST_PAUSE = 0.1  # seconds
LONGEST_PAUSE = 2.0  # seconds


class _TimedOut(ServiceUnreachable):
    """The caller's patience is used up: no further attempt."""


class Arrival:
    """May an attempt of one call have arrived? Then `sent` is true of every failure from there on."""

    def __init__(self) -> None:
        self._possible = False

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """One attempt: what it raises tells whether any so far may have arrived."""
        try:
            yield
        except ServiceUnreachable as error:
            if self._possible and not error.sent:
                raise type(error)(f"{error}; an earlier attempt may have been carried out", sent=True) from error
            self._possible = error.sent
            raise
        except StoreError:  # an answer, and what the store had done before it failed is not known
            self._possible = True
            raise


@contextmanager
def failures_named(request: ServiceRequest[Any], url: str, timeout: float | None) -> Iterator[None]:
    """Make toolmem's errors of what httpx raises."""
    import httpx

    try:
        yield
    except httpx.PoolTimeout as error:
        raise _TimedOut(f"{request.name}: all connections to {url} were in use for {timeout:g} s") from error
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
        raise ServiceUnreachable(
            f"nothing answers at {url} ({_reason(error)}): start it with `toolmem serve`, or give the right base_url"
        ) from error
    except httpx.TimeoutException as error:
        raise _TimedOut(
            f"{url} gave no answer to {request.name} within {timeout:g} s{_open_question(request)}; "
            "`timeout` makes the client wait longer",
            sent=True,
        ) from error
    except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
        raise ServiceUnreachable(
            f"{url} cut the connection during {request.name} ({_reason(error)}){_open_question(request)}", sent=True
        ) from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
        raise RequestError(f"base_url: {url} cannot be asked ({_reason(error)})", field="base_url") from error
    except httpx.HTTPError as error:
        raise ServiceError(f"{url} answered {request.name} with what cannot be read ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _open_question(request: ServiceRequest[Any]) -> str:
    return "" if request.repeatable else "; whether it was carried out is not known"


def policy(request: ServiceRequest[Any], retries: int) -> dict[str, Any]:
    """For tenacity's Retrying and AsyncRetrying."""
    from tenacity import retry_if_exception, stop_after_attempt, wait_random_exponential

    return {
        "retry": retry_if_exception(lambda error: may_go_again(error, request)),
        "stop": stop_after_attempt(retries + 1),
        "wait": wait_random_exponential(multiplier=FIRST_PAUSE, max=LONGEST_PAUSE),
        "before_sleep": _report,
        "reraise": True,
    }


def may_go_again(error: BaseException, request: ServiceRequest[Any]) -> bool:
    """Whether another attempt after this failure can do no harm."""
    if isinstance(error, _TimedOut):
        return False
    if isinstance(error, ServiceUnreachable):
        return request.repeatable or not error.sent
    return request.repeatable and isinstance(error, StoreError)


def _report(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome is not None else None
    logger.info("attempt %d failed, trying again: %s", state.attempt_number, error)
