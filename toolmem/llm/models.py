"""Open the chat models of a configuration."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from toolmem.config.environment import host_of, is_local
from toolmem.config.sections import EmbeddingSection, ModelSection
from toolmem.errors import ConfigError, ModelError
from toolmem.llm.budget import Budget
from toolmem.llm.client import Client, Endpoint, Service
from toolmem.llm.failures import ParameterRefused
from toolmem.llm.openai import OpenAIService, read_chat
from toolmem.llm.tokens import estimated_tokens
from toolmem.llm.usage import current_purpose
from toolmem.models.protocols import ChatModel, Clock

log = logging.getLogger("toolmem.llm")

URLS = {
    "dashscope": "https://dashscope.aliyuncs.com/api/v1",
    "openai_compatible": "https://dashscope.aliyuncs.com/compatible-mode/v1",
}
DEFAULT_MODEL = "qwen-plus"
_SENT = ("temperature", "top_p", "seed", "max_tokens", "enable_thinking")


class RemoteModel:
    """Implements `ChatModel`. A parameter that the service refuses is not sent again."""

    def __init__(self, client: Client, section: ModelSection) -> None:
        self.backend = client.endpoint.backend
        self.model = client.endpoint.model
        self._client = client
        self._params = section.params
        self._sent_as: dict[str, str] = {}  # new names of refused parameters; "": not sent

    async def complete(self, prompt: str, *, json_reply: bool = False) -> str:
        """Return the reply. `json_reply`: ask for JSON, if the service can. Raises ModelError."""
        while True:  # each time with one refused parameter less
            given = self._parameters(json_reply)
            send = partial(self._client.service.chat, prompt, given)
            try:
                return await self._client.request(prompt, send, read_chat)
            except ParameterRefused as error:
                self._leave_out(error, given)

    def _parameters(self, json_reply: bool) -> dict[str, Any]:
        given = {name: getattr(self._params, name) for name in _SENT}
        given["stream"] = self._params.stream or None
        given["response_format"] = {"type": "json_object"} if json_reply else None
        named = {self._sent_as.get(name, name): value for name, value in given.items()}
        return {name: value for name, value in named.items() if name and value is not None}

    def _leave_out(self, error: ParameterRefused, given: dict[str, Any]) -> None:
        """Never send a refused parameter again. Raises the error if it was not among `given`."""
        name = error.parameter
        if name not in given:
            raise error
        if name in self._sent_as:
            return  # another request has noted it
        is_renamed = name == "max_tokens" and "max_completion_tokens" in str(error)
        self._sent_as[name] = "max_completion_tokens" if is_renamed else ""
        change = "is sent as max_completion_tokens" if is_renamed else "is left out"
        log.warning("%s: %s %s: %s", self._client.endpoint.name, name, change, error)


class DryRunModel:
    """Stands for a model in a dry run: it counts prompts and costs, and sends nothing."""

    backend = "dry_run"

    def __init__(self, model: str, budget: Budget) -> None:
        self.model = model
        self._budget = budget

    async def complete(self, prompt: str, *, json_reply: bool = False) -> str:
        raise ModelError("dry_run sends nothing")

    def count(self, prompt: str) -> int:
        """Add a prompt to the usage of the running op; return its tokens. Raises BudgetReached."""
        tokens = estimated_tokens(prompt)
        purpose = current_purpose.get()
        self._budget.reserve(self.model, tokens)  # it is never settled, as there is no reply
        if purpose is not None:
            purpose.count(tokens, 0, *self._budget.price(self.model, tokens))
        return tokens


def open_model(section: ModelSection, setting: str, budget: Budget, clock: Clock) -> ChatModel:
    """Open a chat model. Raises ConfigError; `setting` names the section in its message."""
    if section.backend == "dry_run":
        model = section.model_name or DEFAULT_MODEL
        budget.check_model(model, f"{setting}.model_name")
        return DryRunModel(model, budget)
    client = open_client(section, setting, budget, clock)
    if section.params.stream and section.backend != "openai_compatible":
        raise ConfigError([f"{setting}.params.stream: only openai_compatible streams"])
    return RemoteModel(client, section)


def open_client(
    section: ModelSection | EmbeddingSection, setting: str, budget: Budget, clock: Clock
) -> Client:
    """Open a client of the section's service. Raises ConfigError with every problem."""
    params = section.params
    problems = []
    url = (params.base_url or URLS[section.backend]).rstrip("/")
    address = urlsplit(url) if host_of(url) else None
    if address is None or address.scheme not in ("http", "https"):
        problems.append(f"{setting}.params.base_url: expected an address with http:// or https://")
    elif address.username is not None or address.query or address.fragment:
        problems.append(f"{setting}.params.base_url: expected an address without user, '?' or '#'")
    elif not params.api_key and (section.backend == "dashscope" or not is_local(url)):
        variable = "OPENAI_API_KEY" if ".aliyuncs.com" not in url else "DASHSCOPE_API_KEY"
        problems.append(f"{setting}.params.api_key: missing; set {variable}, or this")
    if not (params.api_key.isascii() and params.api_key.isprintable()):
        problems.append(f"{setting}.params.api_key: holds characters that no header can carry")
    if not section.model_name and isinstance(section, EmbeddingSection):
        problems.append(f"{setting}.model_name: missing")
    elif not section.model_name and params.base_url and section.backend != "dashscope":
        problems.append(f"{setting}.model_name: missing; say which model is served there")
    if problems:
        raise ConfigError(problems)
    model = section.model_name or DEFAULT_MODEL
    budget.check_model(model, f"{setting}.model_name")
    endpoint = Endpoint(section.backend, model, url, params.api_key, params.timeout)
    service: Service = OpenAIService(endpoint)
    if section.backend == "dashscope":
        from toolmem.llm.dashscope import DashScopeService

        service = DashScopeService(endpoint)
    return Client(endpoint, service, budget, clock, params.max_retries)
