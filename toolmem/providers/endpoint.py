"""Where a remote model is, and with which key: checked before anything is sent, never shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import SecretStr

from toolmem.config.secrets import masked
from toolmem.errors import ConfigError
from toolmem.readers.loopback import is_loopback


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One service. `repr` does not show the key."""

    backend: str
    model: str
    base_url: str = field(repr=False)
    key: str = field(repr=False)  # "": a service on this machine that asks for none
    timeout: float  # seconds, of a whole request

    @property
    def name(self) -> str:
        """As it is called in messages."""
        return f"{self.backend}/{self.model}"


def endpoint(
    backend: str,
    model: str,
    *,
    setting: str,
    base_url: str | None,
    default_url: str,
    api_key: SecretStr | None,
    variables: Sequence[str],
    timeout: float,
    keyless_here: bool,
) -> Endpoint:
    """Raises ConfigError, with every problem at once.

    `setting`: the dotted name of the configuration's entry. `variables`: where the key is looked for when it is not
    configured, the first one is the one to set. `keyless_here`: a service on this machine may be asked without a key.
    """
    problems: list[str] = []
    if not model:
        problems.append(f"{setting}.model_name: {backend} needs the name of a model")
    url = (base_url or default_url).rstrip("/")
    address = urlsplit(url)
    shown = masked(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        problems.append(f"{setting}.params.base_url: expected an address with http:// or https://, got {shown!r}")
    elif address.username is not None or address.query or address.fragment:
        problems.append(f"{setting}.params.base_url: expected an address without user, '?' and '#', got {shown!r}")
    key = "" if api_key is None else api_key.get_secret_value().strip()
    if not key and keyless_here and is_loopback(address.hostname or ""):
        pass
    elif not key:
        others = f" (or {', '.join(variables[1:])})" if len(variables) > 1 else ""
        problems.append(
            f"{setting}.params.api_key: no key for {backend}; set the environment variable {variables[0]}{others}, "
            f"or {setting}.params.api_key"
        )
    elif not key.isascii() or not key.isprintable():
        problems.append(f"{setting}.params.api_key: the key holds characters that no HTTP header can carry")
    if problems:
        raise ConfigError(problems)
    return Endpoint(backend, model, url, key, timeout)
