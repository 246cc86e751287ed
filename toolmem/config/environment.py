"""The environment: `.env`, `${oc.env:NAME,default}`, and variables that stand in for settings.

`.env` lies in the working directory, where anybody may have written it. So only keys and addresses
are taken from it, and an address from it is only used with a key from it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from msgspec import Struct

from toolmem.config.layers import Layer, Loader, Setting
from toolmem.text.forms import OFF_WORDS

MAX_DOTENV = 100_000  # bytes
GUARD_SOURCES = ("rules", "repeats", "names", "schema")
_ON = ("on", "true", "yes", "1")
_OPENAI_URL = "https://api.openai.com/v1"
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^#]*))")
_REFERENCE = re.compile(r"\$\{oc\.env:\s*([A-Za-z_]\w*)\s*(?:,([^}]*))?\}")
_OTHER_REFERENCE = re.compile(r"\$\{(?!oc\.env:)[\w.]+[:}]")
_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:\[\]/@%]+))(?::[0-9]{0,5})?")
_DASHSCOPE_KEYS = ("DASHSCOPE_API_KEY", "FLOW_DASHSCOPE_API_KEY")
_DASHSCOPE_URL = ("DASHSCOPE_HTTP_BASE_URL",)
_OPENAI_URLS = ("FLOW_LLM_BASE_URL", "OPENAI_BASE_URL")
_ADDRESSES = {
    ("llm", "openai_compatible"): _OPENAI_URLS,
    ("embedding_model", "openai_compatible"): ("FLOW_EMBEDDING_BASE_URL", *_OPENAI_URLS),
    ("llm", "dashscope"): _DASHSCOPE_URL,
    ("embedding_model", "dashscope"): _DASHSCOPE_URL,
}


class Environment(Struct, frozen=True):
    """Environment variables: `real` of the process; `dotenv` of `.env`, for what `real` lacks."""

    real: Mapping[str, str] = {}
    dotenv: Mapping[str, str] = {}

    def first(self, names: tuple[str, ...], *, dotenv_alone: bool = False) -> tuple[str, str]:
        """Find the first set variable: (name, value), or ("", ""). `dotenv_alone`: only in .env."""
        for name in names:
            value = (not dotenv_alone and self.real.get(name)) or self.dotenv.get(name)
            if value:
                return name, value
        return "", ""


def read_dotenv(path: Path) -> dict[str, str]:
    """The variables in the `NAME=value` lines of a file; none if the file cannot be read."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_DOTENV:
            return {}
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found = filter(None, map(_LINE.match, lines))
    return {each[1]: (each[2] or each[3] or each[4] or "").strip() for each in found}


def resolve_references(layer: Layer, real: Mapping[str, str], problems: list[str]) -> Layer:
    """Replace `${oc.env:NAME,default}` in values. Adds unset variables to `problems`."""
    resolved: Layer = {}
    for path, (value, origin) in layer.items():
        missing: list[str] = []
        resolved_value = _resolved(value, real, missing)
        problems += [f"{'.'.join(path)}: {name} is not set [{origin}]" for name in missing]
        if isinstance(value, str) and (found := _OTHER_REFERENCE.search(value)):
            reason = "only ${oc.env:NAME,default} is provided"
            problems.append(f"{'.'.join(path)}: {found[0]}: {reason} [{origin}]")
        if not missing:
            resolved[path] = Setting(resolved_value, origin)
    return resolved


def _resolved(value: Any, real: Mapping[str, str], missing: list[str]) -> Any:
    if isinstance(value, list):
        return [_resolved(each, real, missing) for each in value]
    if not isinstance(value, str):
        return value

    def replacement(found: re.Match[str]) -> str:
        if found[1] not in real and found[2] is None:
            missing.append(found[1])
        return real.get(found[1], (found[2] or "").strip())

    text = _REFERENCE.sub(replacement, value)
    return _scalar(text) if _REFERENCE.fullmatch(value) else text


def _scalar(text: str) -> Any:
    """Read a scalar as in a file; a list or mapping stays text."""
    try:
        value = yaml.load(text, Loader)  # a SafeLoader
    except yaml.YAMLError:
        return text
    return text if isinstance(value, dict | list) else value


def model_fallbacks(layer: Layer, env: Environment, problems: list[str]) -> Layer:
    """Return model addresses, keys and Elasticsearch hosts that `layer` lacks and `env` has."""
    added: Layer = {}
    for path, setting in layer.items():
        kind = (path[0], str(setting.value))
        if path[2:] != ("backend",):
            continue
        if kind == ("vector_store", "elasticsearch"):
            added |= _elasticsearch_hosts(layer, path[:2], env, problems)
        elif kind in _ADDRESSES:
            added |= _address_and_key(layer, path[:2], kind, env, problems)
    return added


def _elasticsearch_hosts(
    layer: Layer, store: tuple[str, ...], env: Environment, problems: list[str]
) -> Layer:
    path = (*store, "params", "hosts")
    variable, given = env.first(("FLOW_ES_HOSTS",))
    if not variable or path in layer:
        return {}
    user = layer.get((*store, "params", "basic_auth"))
    if user is not None and user.value and not env.real.get(variable):
        problems.append(
            f"{'.'.join(path)}: .env gives the address, and the password from elsewhere is not "
            "sent there; put the address into the environment or a configuration"
        )
        return {}
    return {path: Setting(given.split(","), variable)}


def _address_and_key(
    layer: Layer,
    model: tuple[str, ...],
    kind: tuple[str, str],
    env: Environment,
    problems: list[str],
) -> Layer:
    added: Layer = {}
    url_path = (*model, "params", "base_url")
    key_path = (*model, "params", "api_key")
    given = layer.get(url_path)
    variable, address = ("", str(given.value)) if given else env.first(_ADDRESSES[kind])
    if variable:
        added[url_path] = Setting(address, variable)
    url_from_dotenv = bool(env.dotenv.get(variable)) and not env.real.get(variable)
    if key_path in layer:
        key_from_elsewhere = bool(layer[key_path].value)
    else:
        names = _key_names(kind, variable, address)
        key_name, key = env.first(names, dotenv_alone=url_from_dotenv)
        if not address and key_name == "OPENAI_API_KEY":
            added[url_path] = Setting(_OPENAI_URL, key_name)
        if key:
            added[key_path] = Setting(key, key_name)
        key_from_elsewhere = not key and bool(env.first(names)[1])
    if url_from_dotenv and key_from_elsewhere:
        problems.append(
            f"{'.'.join(url_path)}: .env gives the address, and the key from elsewhere is not sent "
            "there; put both into .env, or the address into the environment or a configuration"
        )
        return {}
    return added


def with_guard_switch(layer: Layer, real: Mapping[str, str], warnings: list[str]) -> Layer:
    """Turn `guard: off` into `off` for each source of decisions. TOOLMEM_GUARD=off does so, too.

    A value of the variable that is neither on nor off is ignored, with a warning.
    """
    whole = layer.get(("guard",))
    word = real.get("TOOLMEM_GUARD", "").strip().lower()
    if word in OFF_WORDS:
        whole = Setting("off", "TOOLMEM_GUARD")
    elif word and word not in _ON:
        warnings.append(f"TOOLMEM_GUARD: expected off or on, got {word[:40]!r}: it is ignored")
    if whole is None or whole.value not in ("off", False):
        return layer
    others = {path: each for path, each in layer.items() if path[0] != "guard"}
    return others | {("guard", name): Setting("off", whole.origin) for name in GUARD_SOURCES}


def _key_names(kind: tuple[str, str], variable: str, address: str) -> tuple[str, ...]:
    """Name the variables that may hold an address's key. DashScope's key goes to it alone."""
    flow = ("FLOW_EMBEDDING_API_KEY",) if kind[0] == "embedding_model" else ()
    flow = (*flow, "FLOW_LLM_API_KEY")
    if kind[1] == "dashscope":
        return (*_DASHSCOPE_KEYS, *flow)
    host = host_of(address)
    if variable == "OPENAI_BASE_URL" or host == "api.openai.com":
        return ("OPENAI_API_KEY",)
    if not address:
        return (*flow, *_DASHSCOPE_KEYS, "OPENAI_API_KEY")
    if host.endswith(".aliyuncs.com"):
        return (*flow, *_DASHSCOPE_KEYS)
    return (*flow, "OPENAI_API_KEY")


def host_of(address: str) -> str:
    """The host of an address; "" if there is none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:  # half an IPv6 address
        return ""


def is_local(address: str) -> bool:
    """Whether an address is on this machine, so that no proxy is used for it."""
    return is_loopback(host_of(address))


def is_loopback(host: str) -> bool:
    """Whether a host, such as `localhost:8002`, `127.0.0.1` or `[::1]`, is this machine."""
    found = _HOST.fullmatch(host.strip())
    name = (found["six"] or found["name"]).rstrip(".").lower() if found else host
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
