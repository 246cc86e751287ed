"""The client: addresses and credentials as users write them, turned into what the official client takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from toolmem.config.extras import need
from toolmem.config.hidden_values import masked
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from elasticsearch import AsyncElasticsearch

DEFAULT_PORTS = {"http": 9200, "https": 443}


@dataclass(frozen=True, slots=True)
class Secrets:
    """Never shown, not even by `repr`."""

    basic_auth: tuple[str, str] | None = field(repr=False)
    api_key: str | None = field(repr=False)
    ca_certs: str | None
    verify_certs: bool


def make_client(hosts: Sequence[str], secrets: Secrets, timeout: float) -> AsyncElasticsearch:
    """Without retries and sniffing of its own: `connection` does the one, and the configuration names the nodes."""
    need("a store on Elasticsearch", "elasticsearch")
    from elasticsearch import AsyncElasticsearch

    tls: dict[str, Any] = {}
    if any(host.startswith("https:") for host in hosts):
        tls = {"verify_certs": secrets.verify_certs, "ssl_show_warn": False}
        if secrets.ca_certs is not None:
            tls["ca_certs"] = secrets.ca_certs
    return AsyncElasticsearch(
        list(hosts),
        basic_auth=secrets.basic_auth,
        api_key=secrets.api_key,
        max_retries=0,
        retry_on_timeout=False,
        request_timeout=timeout,
        **tls,
    )


def host_url(address: str) -> str:
    """A URL with its port and without credentials."""
    parts = urlsplit(address)
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        shown = masked(address)
        raise RequestError(
            f"hosts: expected a URL like http://localhost:9200 or https://cluster.example:9243, got {shown!r}",
            field="hosts",
        )
    try:
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except ValueError as error:
        raise RequestError(f"hosts: {error}", field="hosts") from error
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{name}:{port}{parts.path.rstrip('/')}"


def credentials(given: str | None, addresses: Sequence[str]) -> tuple[str, str] | None:
    """User and password: as configured, else as they stand in the first URL that has them."""
    if given is not None:
        user, colon, password = given.partition(":")
        if not colon:
            raise RequestError("basic_auth: expected 'user:password'", field="basic_auth")
        return user, password
    for address in addresses:
        parts = urlsplit(address)
        if parts.username:
            return unquote(parts.username), unquote(parts.password or "")
    return None
