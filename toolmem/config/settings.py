"""The configuration as typed sections. Every key that is not here is an error, at any depth.

Times are in seconds where nothing else is said. `None` means: not set, the adapter's or the model's own value.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from toolmem.config.memory_settings import (
    GuardSettings,
    GuidanceSettings,
    LogSettings,
    RuleSettings,
    SecretSettings,
    SessionSettings,
    WholeGuard,
)
from toolmem.config.nearest_names import hint
from toolmem.config.section_base import Section
from toolmem.config.sockets import CHAT_MODELS, EMBEDDERS, STORES, Socket

Seconds = Annotated[float, Field(ge=0)]
Port = Annotated[int, Field(ge=0, le=65535)]

JSON_TYPES = ("string", "array", "integer", "number", "boolean", "object")
# FlowLLM up to 0.1.4 wrote Python's names.
_TYPE_ALIASES = {
    "str": "string",
    "list": "array",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "dict": "object",
}


def _one_of(socket: Socket, of_reme: tuple[str, ...] = ()) -> AfterValidator:
    """A backend's name; the error of an unknown one lists those that there are."""

    def check(name: str) -> str:
        if name in socket.builtin or socket.find(name) is not None:
            return name
        if name in of_reme and not socket.why_broken(name):
            ours = ", ".join(socket.names())
            raise ValueError(f"{name!r} is a {socket.kind} that toolmem does not have; it has {ours}")
        raise ValueError(socket.unknown(name))

    return AfterValidator(check)


class BackendParams(Section):
    """Params of a backend. Those of one that is not built in are handed to its class as they are: `own`."""

    _own: dict[str, Any] | None = PrivateAttr(default=None)

    @property
    def own(self) -> dict[str, Any] | None:
        """None where the backend is built in."""
        return self._own


def _own_or(socket: Socket, typed: type[BackendParams]) -> WrapValidator:
    """The typed params of a built-in backend, whatever stands there for another one."""

    def check(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        backend = info.data.get("backend", "")  # absent where it was refused
        if not backend or backend in socket.builtin or not isinstance(value, dict | typed):
            return handler(value)
        params = typed()
        params._own = dict(value) if isinstance(value, dict) else {}
        return params

    return WrapValidator(check)


# ---------------------------------------------------------------- flows and ops


def _as_types(given: Any) -> Any:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names:
        return given
    known = [_TYPE_ALIASES.get(name, name) if isinstance(name, str) else name for name in names]
    for name in known:
        if name not in JSON_TYPES:
            raise ValueError(f"{name!r} is no type ({hint(str(name), JSON_TYPES)}); there are {', '.join(JSON_TYPES)}")
    return known[0] if isinstance(given, str) else known


class Argument(Section):
    """One argument of a flow's request. `type`: one JSON type, or a list of them where several will do."""

    type: Annotated[str | list[str], BeforeValidator(_as_types)] = "string"
    description: str = ""
    required: bool = True
    enum: list[Any] | None = None
    items: dict[str, Any] | None = None  # JSON schema of an array's items
    properties: dict[str, Any] | None = None  # JSON schemas of an object's fields

    @property
    def types(self) -> tuple[str, ...]:
        return (self.type,) if isinstance(self.type, str) else tuple(self.type)

    @property
    def of_strings(self) -> bool:
        """Where it is a list, it holds nothing but strings."""
        return (self.items or {}).get("type") == "string"

    def in_words(self) -> str:
        """Its types, as an error names them."""
        several = "a list of strings" if self.of_strings else "a list"
        return " or ".join(several if each == "array" else f"a{'n' * (each[0] in 'io')} {each}" for each in self.types)

    def as_json_schema(self) -> dict[str, Any]:
        """As the parameters of a tool, and the document of the HTTP service, have it."""
        told: dict[str, Any] = {"type": self.type}
        told |= {"description": self.description} if self.description else {}
        told |= {} if self.enum is None else {"enum": self.enum}
        # Some hosts refuse an array that does not say what it holds.
        told |= {"items": self.items or {}} if "array" in self.types else {}
        return told | ({} if self.properties is None else {"properties": self.properties})


class FlowSettings(Section):
    flow_content: str
    description: str = ""
    input_schema: dict[str, Argument] = Field(default_factory=dict)
    stream: bool = False  # accepted as FlowLLM writes it; answers are never streamed


class OpSettings(Section):
    """What every op has beside its params. Names point into the configuration's sections of the same name."""

    llm: str = "default"
    embedding_model: str = "default"
    vector_store: str = "default"
    judge: str = ""  # one of your own, by name; "": as `llm` says
    writer: str = ""  # one of your own, by name; "": as `llm` says
    language: str = ""  # "": the configuration's
    prompt_path: str | None = None  # a YAML file of prompts, tried before the op's own
    max_retries: int | None = Field(default=None, ge=0)  # of one model request; None: the LLM's own
    raise_exception: bool = True  # False: an exception is noted in the response and the flow goes on


class OpEntry(OpSettings):
    """`op.<key>`. What is not set is the op's own default; `""` and null count as not set, as in FlowLLM."""

    backend: str = ""  # a registered op; "": the key itself
    params: dict[str, Any] = Field(default_factory=dict)  # checked by the op's Params

    @model_validator(mode="before")
    @classmethod
    def _without_what_is_not_set(cls, given: Any) -> Any:
        return (
            {key: each for key, each in given.items() if each not in ("", None)} if isinstance(given, dict) else given
        )


# ---------------------------------------------------------------- models

STORES_OF_REME = ("chroma", "qdrant", "pgvector")  # named in ReMe's and FlowLLM's files


class RemoteParams(BackendParams):
    """What models of both kinds have that are asked over the network."""

    base_url: str | None = None
    api_key: SecretStr | None = None
    timeout: Annotated[float, Field(gt=0)] = 60.0
    max_concurrency: Annotated[int, Field(ge=1)] = 8  # requests in flight
    max_retries: Annotated[int, Field(ge=0)] = 3  # of a request that may pass at another attempt


class LLMParams(RemoteParams):
    temperature: Annotated[float, Field(ge=0)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: int | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None  # of a completion
    enable_thinking: bool | None = None  # Qwen's switch; None: the model's own


class LLMSettings(Section):
    backend: Annotated[str, _one_of(CHAT_MODELS)] = "offline"
    model_name: str = ""
    params: Annotated[LLMParams, _own_or(CHAT_MODELS, LLMParams)] = Field(
        default_factory=LLMParams, validate_default=True
    )

    @property
    def asked_model(self) -> str:
        """The name of the model that is asked (or counted for); "" where none is."""
        return "" if self.backend == "offline" else self.model_name


class EmbeddingParams(RemoteParams):
    dimensions: Annotated[int, Field(ge=1, le=4096)] | None = (
        None  # None: the model's own; multilingual: 512, hashing: 384
    )
    max_batch_size: Annotated[int, Field(ge=1)] = 10  # texts per request


class EmbeddingSettings(Section):
    backend: Annotated[str, _one_of(EMBEDDERS)] = "multilingual"
    model_name: str = ""
    params: Annotated[EmbeddingParams, _own_or(EMBEDDERS, EmbeddingParams)] = Field(
        default_factory=EmbeddingParams, validate_default=True
    )

    @property
    def asked_model(self) -> str:
        """The name of the model that is asked; "" where none is."""
        return "" if self.backend in ("multilingual", "hashing") else self.model_name


class StoreParams(BackendParams):
    """Params of both stores; one that the chosen backend does not have is refused by name."""

    # sqlite
    path: str = ".toolmem/memory.db"  # a file, or ":memory:"
    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    busy_timeout: Seconds = 30.0
    # elasticsearch
    hosts: str | list[str] = "http://localhost:9200"
    index_prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$")] = "toolmem"
    basic_auth: SecretStr | None = None  # user:password
    api_key: SecretStr | None = None
    ca_certs: str | None = None  # a file
    verify_certs: bool = True
    timeout: Annotated[float, Field(gt=0)] = 30.0
    max_retries: Annotated[int, Field(ge=0)] = 3
    vector_index: Literal["flat", "int8_hnsw"] = "flat"
    number_of_shards: Annotated[int, Field(ge=1)] = 1
    number_of_replicas: Annotated[int, Field(ge=0)] = 1


STORE_PARAMS = {
    "sqlite": ("path", "synchronous", "busy_timeout"),
    "elasticsearch": (
        *("hosts", "index_prefix", "basic_auth", "api_key", "ca_certs", "verify_certs", "timeout", "max_retries"),
        *("vector_index", "number_of_shards", "number_of_replicas"),
    ),
}


class StoreSettings(Section):
    backend: Annotated[str, _one_of(STORES, STORES_OF_REME)] = "sqlite"
    embedding_model: str = "default"
    params: Annotated[StoreParams, _own_or(STORES, StoreParams)] = Field(
        default_factory=StoreParams, validate_default=True
    )

    def keywords(self) -> dict[str, Any]:
        """The params of a built-in store as its class takes them, secrets in plain text."""
        given = {name: getattr(self.params, name) for name in STORE_PARAMS[self.backend]}
        return {name: each.get_secret_value() if isinstance(each, SecretStr) else each for name, each in given.items()}


# ---------------------------------------------------------------- serving


class HttpSettings(Section):
    host: str = "127.0.0.1"
    port: Port = 8002
    timeout_keep_alive: Annotated[int, Field(ge=0)] = 600  # of a connection on which nothing is asked
    limit_concurrency: Annotated[int, Field(ge=1)] | None = None  # requests at once, per worker; None: no limit
    workers: Annotated[int, Field(ge=1, le=64)] = 1  # processes that serve one store
    max_body_bytes: Annotated[int, Field(ge=1)] = 8_000_000
    max_batch: Annotated[int, Field(ge=1)] = 1000  # items of a request's list, requests of an RPC batch
    read_timeout: Annotated[float, Field(gt=0)] = 30.0  # for a request's head, and for its body, to arrive
    shutdown_timeout: Annotated[float, Field(gt=0)] = 60.0  # for requests in flight to finish; then they are cancelled
    cors_origins: list[str] = Field(default_factory=list)  # web pages that may ask from a browser


def _tool_names(given: Any) -> Any:
    """A list of names, or text with names between commas."""
    return [name.strip() for name in given.split(",") if name.strip()] if isinstance(given, str) else given


class McpSettings(Section):
    transport: Literal["stdio", "sse", "http", "streamable-http"] = "stdio"
    host: str = "127.0.0.1"
    port: Port = 8001
    # names of flows that agents are offered beside the default list; `all`: every flow
    tools: Annotated[list[str], BeforeValidator(_tool_names)] = Field(default_factory=list)


class CmdSettings(Section):
    flow: str = ""
    params: dict[str, Any] = Field(default_factory=dict)


class AuthSettings(Section):
    token_env: str = "TOOLMEM_TOKEN"  # the variable that holds the bearer token
    token_file: str | None = None


# ---------------------------------------------------------------- ours


class BudgetSettings(Section):
    """Of one run; the request that would exceed it is not made. None: no limit."""

    max_tokens: Annotated[int, Field(ge=0)] | None = None
    max_cost: Annotated[float, Field(ge=0)] | None = None


class Price(Section):
    """Of one model, per 1000 tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)] = 0.0
    cached_input: Annotated[float, Field(ge=0)] | None = None  # None: as `input`
    batch_input: Annotated[float, Field(ge=0)] | None = None
    batch_output: Annotated[float, Field(ge=0)] | None = None
    currency: str = "CNY"
    date: str = ""  # when it was read
    source: str = ""


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ValueError(f"{name!r} is no time zone ({hint(name, available_timezones())})") from None
    return name


class Settings(Section):
    """The whole configuration."""

    backend: Literal["http", "mcp", "cmd"] = "http"
    language: str = ""
    time_zone: Annotated[str, AfterValidator(_time_zone)] = "UTC"  # of times without a zone
    enabled_flows: list[str] = Field(default_factory=list)  # not empty: only these
    disabled_flows: list[str] = Field(default_factory=list)
    max_errors: Annotated[int, Field(ge=0)] | None = None  # a run with more failed requests stops; None: no limit
    dump_dir: str = ".toolmem/dumps"
    op_modules: list[str] = Field(default_factory=list)

    flow: dict[str, FlowSettings] = Field(default_factory=dict)
    op: dict[str, OpEntry] = Field(default_factory=dict)
    llm: dict[str, LLMSettings] = Field(default_factory=dict)
    embedding_model: dict[str, EmbeddingSettings] = Field(default_factory=dict)
    vector_store: dict[str, StoreSettings] = Field(default_factory=dict)

    http: HttpSettings = Field(default_factory=HttpSettings)
    mcp: McpSettings = Field(default_factory=McpSettings)
    cmd: CmdSettings = Field(default_factory=CmdSettings)
    auth: AuthSettings = Field(default_factory=AuthSettings)

    rules: RuleSettings = Field(default_factory=RuleSettings)
    guidance: GuidanceSettings = Field(default_factory=GuidanceSettings)
    guard: WholeGuard = Field(default_factory=GuardSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    session: SessionSettings = Field(default_factory=SessionSettings)
    secrets: SecretSettings = Field(default_factory=SecretSettings)
    budget: BudgetSettings = Field(default_factory=BudgetSettings)
    prices: dict[str, Price] = Field(default_factory=dict)  # by model name

    @property
    def guidance_tokens(self) -> int:
        """Of guidance in a prompt."""
        named = self.session.guidance_tokens
        return self.guidance.max_tokens_prompt if named is None else named

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)
