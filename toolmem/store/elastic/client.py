"""The client: addresses and credentials as users write them, turned into what the official client takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from toolmem.config.extras import need
from toolmem.config.hidden_values import masked
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from elasticsearch import AsyncElasticsearch

DEFAULT_PORTS = {"http": 9200, "https": 443}


def make_client(hosts: Sequence[str], timeout: float, options: Mapping[str, Any]) -> AsyncElasticsearch:
    """Without retries and sniffing of its own: `cluster` does the one, and the configuration names the nodes."""
    need("a store on Elasticsearch", "elasticsearch")
    from elasticsearch import AsyncElasticsearch

    return AsyncElasticsearch(list(hosts), max_retries=0, retry_on_timeout=False, request_timeout=timeout, **options)


def client_options(
    addresses: Sequence[str], basic_auth: str | None, api_key: str | None, ca_certs: str | None, verify_certs: bool
) -> dict[str, Any]:
    """Credentials and TLS, as the client takes them. Never to be shown."""
    options: dict[str, Any] = {"basic_auth": _credentials(basic_auth, addresses), "api_key": api_key}
    if any(urlsplit(address).scheme == "https" for address in addresses):
        options |= {"verify_certs": verify_certs, "ssl_show_warn": False}
        if ca_certs is not None:
            options["ca_certs"] = ca_certs
    return options


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


def _credentials(given: str | None, addresses: Sequence[str]) -> tuple[str, str] | None:
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
