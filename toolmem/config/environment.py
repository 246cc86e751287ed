"""The environment: `.env`, `${oc.env:NAME,default}`, and the variables that stand in for what no file says."""

from __future__ import annotations

import re
import secrets
import stat
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from toolmem.config.hidden_values import is_secret_variable
from toolmem.config.layers import at
from toolmem.config.scalars import read_scalar
from toolmem.errors import ConfigError
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass

Key = tuple[str, ...]

NAMES_CODE = (
    "comes from .env, which may be anybody's; name the modules in the environment, a configuration or an override"
)
_ABSENT = object()


@dataclass(frozen=True)
class Surroundings:
    """The real environment, and the variables of `.env` behind it."""

    real: Mapping[str, str]
    dotenv: Mapping[str, str]

    @cached_property
    def variables(self) -> dict[str, str]:
        return {**self.dotenv, **self.real}

    def is_dotenvs(self, variable: str) -> bool:
        return variable in self.dotenv and variable not in self.real

    @cached_property
    def marked(self) -> dict[str, str] | None:
        """The variables with another value for each that only `.env` has; None where there is none."""
        marks = {name: secrets.token_hex(8) + "x" for name in self.dotenv if self.is_dotenvs(name)}
        return {**marks, **self.real} if marks else None


class Tainted:
    """Which values of a configuration come from `.env`: those that change with its variables."""

    def __init__(self, tree: Mapping[str, Any] | None = None, marked: Mapping[str, Any] | None = None) -> None:
        self._paths: set[Key] = set()
        self._marked = marked or {}
        if tree is not None:
            self._compare(tree, marked, ())

    def _compare(self, value: Any, marked: Any, path: Key) -> None:
        if isinstance(value, Mapping) and isinstance(marked, Mapping):
            for key, item in value.items():
                self._compare(item, marked.get(key, _ABSENT), (*path, str(key)))
        elif value != marked:
            self._paths.add(path)

    def without(self, path: Key) -> Any:
        """The value with marks in place of what comes from `.env`."""
        return at(self._marked, path)

    def add(self, path: Key) -> None:
        self._paths.add(path)

    def holds(self, path: Key) -> bool:
        """Does this value, or a section around it, come from `.env`?"""
        return any(path[:end] in self._paths for end in range(len(path) + 1))


# (section, backend, param) -> variables, the first one that is set counts. The key of an openai_compatible model is
# looked for under ReMe's name first, because that one belongs to FLOW_LLM_BASE_URL; OpenAI's own names come last, so
# that who has them for other programs is asked where they were asked before. `key_variables` says what an address adds.
FALLBACKS: dict[tuple[str, str, str], tuple[str, ...]] = {
    ("llm", "dashscope", "api_key"): ("DASHSCOPE_API_KEY", "FLOW_DASHSCOPE_API_KEY", "FLOW_LLM_API_KEY"),
    ("llm", "dashscope", "base_url"): ("DASHSCOPE_HTTP_BASE_URL",),
    ("llm", "openai_compatible", "api_key"): (
        *("FLOW_LLM_API_KEY", "DASHSCOPE_API_KEY", "FLOW_DASHSCOPE_API_KEY"),
        "OPENAI_API_KEY",
    ),
    ("llm", "openai_compatible", "base_url"): ("FLOW_LLM_BASE_URL", "OPENAI_BASE_URL"),
    ("embedding_model", "dashscope", "api_key"): (
        *("DASHSCOPE_API_KEY", "FLOW_DASHSCOPE_API_KEY"),
        *("FLOW_EMBEDDING_API_KEY", "FLOW_LLM_API_KEY"),
    ),
    ("embedding_model", "dashscope", "base_url"): ("DASHSCOPE_HTTP_BASE_URL",),
    ("embedding_model", "openai_compatible", "api_key"): (
        *("FLOW_EMBEDDING_API_KEY", "FLOW_LLM_API_KEY"),
        *("DASHSCOPE_API_KEY", "FLOW_DASHSCOPE_API_KEY"),
        "OPENAI_API_KEY",
    ),
    ("embedding_model", "openai_compatible", "base_url"): (
        *("FLOW_EMBEDDING_BASE_URL", "FLOW_LLM_BASE_URL"),
        "OPENAI_BASE_URL",
    ),
    ("vector_store", "elasticsearch", "hosts"): ("FLOW_ES_HOSTS",),
}

_KEYS = ("api_key", "basic_auth")
OPENAI_KEY, OPENAI_ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"
OPENAI = "https://api.openai.com/v1"  # where a key of OpenAI leads that no address stands beside
_OPENAI_HOST = "api.openai.com"

# The switch of rule capture: an operator's word, over what a file says; an override still wins.
CAPTURE = ("TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED", "OPENHUMAN_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED")
# The switch of the guard, over whatever a file or an override says.
GUARD = "TOOLMEM_GUARD"
_SWITCH = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}

_LINE = late_pattern(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)")
_OPEN = "${oc.env:"
MAX_DOTENV = 1_000_000  # bytes
MAX_NESTED = 50  # interpolations inside each other


def read_dotenv(path: Path) -> dict[str, str]:
    """`NAME=value` lines; `export` before them, quotes around values and `#` comments are understood."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_DOTENV:
            raise ConfigError(f"{path}: expected a file of at most {MAX_DOTENV:,} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({type(error).__name__})") from error
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is not None and not line.lstrip().startswith("#"):
            found[match[1]] = _dotenv_value(match[2].strip())
    return found


def _dotenv_value(text: str) -> str:
    quote = text[:1]
    if quote in ("'", '"'):
        end = text.find(quote, 1)
        if end > 0:
            return text[1:end]
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip()


class EnvironmentValue(NamedTuple):
    """What the environment adds to an entry that does not say it itself."""

    path: Key
    value: str
    variable: str
    from_dotenv: bool


def fall_back(tree: Mapping[str, Any], env: Surroundings, tainted: Tainted) -> tuple[list[EnvironmentValue], list[str]]:
    """(what is added, problems). An address that `.env` gave is used with a key of `.env` alone."""
    added: list[EnvironmentValue] = []
    problems: list[str] = []
    for section, backend in dict.fromkeys((section, backend) for section, backend, _ in FALLBACKS):
        entries = tree.get(section)
        for name, entry in entries.items() if isinstance(entries, Mapping) else ():
            params = entry.get("params", {}) if isinstance(entry, Mapping) else None
            if isinstance(params, Mapping) and entry.get("backend") == backend:
                _complete(_Entry(section, backend, name, params), env, tainted, added, problems)
    return added, problems


class _Entry(NamedTuple):
    section: str
    backend: str
    name: str
    params: Mapping[str, Any]
    openai: bool = False  # is its address one of OpenAI's variable, or OpenAI itself?

    def path(self, param: str) -> Key:
        return (self.section, self.name, "params", param)

    def variables(self, param: str) -> tuple[str, ...]:
        if param == "api_key":
            return key_variables(self.section, self.backend, openai=self.openai)
        return FALLBACKS.get((self.section, self.backend, param), ())


def key_variables(section: str, backend: str, *, openai: bool = False) -> tuple[str, ...]:
    """Where a key is looked for.

    `openai`: for an address of OPENAI_BASE_URL, or of OpenAI itself. Its own key comes first there, and DashScope's is
    not sent to it.
    """
    names = FALLBACKS.get((section, backend, "api_key"), ())
    if not openai or OPENAI_KEY not in names:
        return names
    return (OPENAI_KEY, *(name for name in names if name != OPENAI_KEY and "DASHSCOPE" not in name))


def _leads_to_openai(address: Any) -> bool:
    try:
        return isinstance(address, str) and urlsplit(address).hostname == _OPENAI_HOST
    except ValueError:
        return False


def _is_openais(address: Any, found: EnvironmentValue | None) -> bool:
    return _leads_to_openai(address) if found is None else found.variable == OPENAI_ADDRESS


def _complete(
    entry: _Entry, env: Surroundings, tainted: Tainted, added: list[EnvironmentValue], problems: list[str]
) -> None:
    address = "hosts" if entry.section == "vector_store" else "base_url"
    found = _first(entry, address, env.variables, env)
    entry = entry._replace(openai=_is_openais(entry.params.get(address), found))
    foreign = tainted.holds(entry.path(address)) or (found is not None and found.from_dotenv)
    added += [] if found is None else [found]
    for key in _KEYS:
        given = entry.params.get(key)
        chosen = _first(entry, key, env.dotenv if foreign else env.variables, env)
        if chosen is not None:
            added.append(chosen._replace(from_dotenv=foreign or chosen.from_dotenv))
            if chosen.variable == OPENAI_KEY and found is None and entry.params.get(address) is None:
                added.append(EnvironmentValue(entry.path(address), OPENAI, OPENAI_KEY, from_dotenv=False))
        elif foreign and (
            (given is not None and not tainted.holds(entry.path(key)))
            or (given is None and _first(entry, key, env.real, env) is not None)
        ):
            problems.append(_kept_back(entry.path(address), f"the key ({key})"))
    if foreign and _users(entry.params.get(address)) & _users(tainted.without(entry.path(address))):
        problems.append(_kept_back(entry.path(address), "its user and password"))


def _users(address: Any) -> set[str]:
    """What stands before the @ of one address, or of several."""
    texts = address if isinstance(address, list) else [address]
    return {text.rpartition("@")[0].rpartition("//")[2] for text in texts if isinstance(text, str) and "@" in text}


def _kept_back(address: Key, secret: str) -> str:
    return (
        f"{'.'.join(address)}: .env gives the address, and {secret} from elsewhere is not sent to where a file of this "
        "folder says. Put both into .env, or the address into the environment, a configuration or an override"
    )


def _first(entry: _Entry, param: str, looked_in: Mapping[str, str], env: Surroundings) -> EnvironmentValue | None:
    if entry.params.get(param) is not None:
        return None
    variable = next((each for each in entry.variables(param) if looked_in.get(each)), None)
    if variable is None:
        return None
    return EnvironmentValue(entry.path(param), looked_in[variable], variable, env.is_dotenvs(variable))


def capture_switch(env: Mapping[str, str]) -> tuple[bool, str] | None:
    """(on or off, variable) where the environment says. Raises ValueError where it says something else."""
    variable = next((variable for variable in CAPTURE if env.get(variable, "").strip()), None)
    return None if variable is None else (_switch(env, variable), variable)


def guard_switched_off(env: Mapping[str, str]) -> bool:
    """Does the environment switch the guard off? A word that is no switch leaves it on."""
    return _SWITCH.get(env.get(GUARD, "").strip().lower()) is False


def unknown_guard_switch(env: Mapping[str, str]) -> str:
    """What is said of a word that is no switch; "" where there is none."""
    word = env.get(GUARD, "").strip().lower()
    if not word or word in _SWITCH:
        return ""
    return f"environment {GUARD}: expected one of {', '.join(_SWITCH)}; got {env[GUARD][:80]!r}, so the guard stays on"


def _switch(env: Mapping[str, str], variable: str) -> bool:
    word = env[variable].strip().lower()
    if word not in _SWITCH:
        raise ValueError(f"environment {variable}: expected one of {', '.join(_SWITCH)}; got {env[variable]!r}")
    return _SWITCH[word]


class WatchedVariables(dict[str, str]):
    """Variables that remember the values of those that were asked for by a name which says that they are secret."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(variables)
        self.secrets: set[str] = set()

    def __getitem__(self, name: str) -> str:
        value = super().__getitem__(name)
        if is_secret_variable(name) and value.strip():
            self.secrets.add(value)
        return value


def fill_in(value: Any, env: Mapping[str, str]) -> Any:
    """A text with its `${oc.env:...}` replaced; one that is nothing else becomes a scalar of the usual rules.

    Raises ValueError where a variable is not set and there is no default. What comes from the environment is taken
    as it is: a `${` in it is not looked at again.
    """
    if not isinstance(value, str) or _OPEN not in value:
        return value
    pieces: list[str] = []
    rest = value
    while (start := rest.find(_OPEN)) >= 0:
        end = _closing(rest, start)
        found = _look_up(rest[start + len(_OPEN) : end], env)
        if start == 0 and end == len(rest) - 1 and not pieces:
            found = read_scalar(found) if isinstance(found, str) else found
            return _escaped(found) if isinstance(found, str) else found
        pieces += [rest[:start], _escaped("null" if found is None else str(found))]
        rest = rest[end + 1 :]
    return "".join([*pieces, rest])


def _closing(text: str, start: int) -> int:
    depth = 0
    position = start
    while position < len(text):
        if text.startswith("${", position):
            depth += 1
            if depth > MAX_NESTED:
                raise ValueError(f"more than {MAX_NESTED} `${{` inside each other")
            position += 2
            continue
        if text[position] == "}":
            depth -= 1
            if depth == 0:
                return position
        position += 1
    raise ValueError(f"{text[start : start + 40]!r} has no closing brace")


def _look_up(inside: str, env: Mapping[str, str]) -> Any:
    name, comma, default = inside.partition(",")
    name = name.strip()
    if name in env:
        return env[name]
    if not comma:
        raise ValueError(f"the environment variable {name!r} is not set and has no default")
    return fill_in(default.strip(), env)


def _escaped(text: str) -> str:
    """So that OmegaConf, which merges the layers, takes `${` for what it is."""
    return re.sub(r"(?<!\\)(\\*)\$\{", lambda found: found[1] * 2 + r"\${", text)
