"""A scripted model for whole agents (Claude Code, Codex, ...), on this machine: streaming, tools, everything recorded.

    with AgentServer(AskedCall("Bash", {"command": "git push origin main"}), "Pushed.") as server:
        ...  # run the agent with ANTHROPIC_BASE_URL=server.url
    assert "never push to main" in server.turns[0].text  # what the model read
    assert server.turns[1].answers[0].failed             # what came of its call

It speaks Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini, at the paths that agents call.
Turns are said in their order, to requests that offer tools; when they are used up, the model says "Done." Requests
without tools (titles, summaries) use up no turn: they are answered with `aside`.
"""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Callable

from aiohttp import web

from toolmem.testing.agent_turns import AgentApi, AgentRequest, AskedCall, ModelTurn, Script, ToolAnswer, Turn
from toolmem.testing.anthropic_api import AnthropicMessages
from toolmem.testing.chat_api import OpenAIChat
from toolmem.testing.gemini_api import Gemini
from toolmem.testing.loopback_server import LoopbackServer
from toolmem.testing.model_answers import read_object
from toolmem.testing.model_server import SECRET_HEADERS
from toolmem.testing.responses_api import OpenAIResponses

__all__ = ["AgentRequest", "AgentServer", "AskedCall", "ModelTurn", "ToolAnswer"]

APIS: tuple[AgentApi, ...] = (AnthropicMessages(), OpenAIResponses(), OpenAIChat(), Gemini())
LAST_WORD = "Done."


class AgentServer(LoopbackServer):
    """`turns`: what the model does, in order; a function is asked with the request. `port` 0: any free one."""

    def __init__(
        self,
        *turns: Turn | Script,
        aside: str | Callable[[AgentRequest], str] = "A summary of the conversation.",
        is_aside: Callable[[AgentRequest], bool] = lambda request: not request.tools,
        port: int = 0,
    ) -> None:
        super().__init__(port=port)
        self.requests: list[AgentRequest] = []  # all that asked for a turn, in order
        self.others: list[str] = []  # "GET /v1/models": what else was asked for
        self._left: deque[Turn | Script] = deque(turns)
        self._aside = aside
        self._is_aside = is_aside
        self._numbers = itertools.count(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def turns(self) -> list[AgentRequest]:
        """The requests that were answered with a turn of the script."""
        return [request for request in self.requests if not self._is_aside(request)]

    @property
    def asides(self) -> list[AgentRequest]:
        """The requests that were answered with `aside`."""
        return [request for request in self.requests if self._is_aside(request)]

    @property
    def turns_left(self) -> int:
        return len(self._left)

    def then(self, *turns: Turn | Script) -> None:
        """Turns to do after those that are left."""
        self._left.extend(turns)

    def drop_turns(self) -> None:
        """Forget the turns that are left."""
        self._left.clear()

    async def handle(self, http: web.Request) -> web.StreamResponse:
        api = next((api for api in APIS if http.method == "POST" and api.serves(http.path)), None)
        body = read_object(await http.read())
        if api is None:
            return self._other(http)
        request = AgentRequest(
            number=next(self._numbers),
            api=api.name,
            path=http.path_qs,
            body=body,
            headers={name.lower(): it for name, it in http.headers.items() if name.lower() not in SECRET_HEADERS},
        )
        api.read(request)
        self.requests.append(request)
        request.turn = api.turn(self._said(request))
        if not request.streams:
            return web.json_response(api.whole(request, request.turn))
        return await _streamed(http, api, request, request.turn)

    def _said(self, request: AgentRequest) -> Turn:
        if self._is_aside(request):
            return self._aside if isinstance(self._aside, str) else self._aside(request)
        said = self._left.popleft() if self._left else LAST_WORD
        return said(request) if callable(said) else said

    def _other(self, http: web.Request) -> web.Response:
        self.others.append(f"{http.method} {http.path_qs}")
        if http.path.endswith("/count_tokens"):
            return web.json_response({"input_tokens": 100})
        if http.path.endswith(":countTokens"):
            return web.json_response({"totalTokens": 100})
        if http.path.endswith("/models"):
            return web.json_response({"object": "list", "data": [], "models": []})
        if http.method in ("GET", "HEAD"):
            return web.json_response({})
        refused = {"type": "error", "error": {"type": "not_found_error", "message": f"{http.path}: not served"}}
        return web.Response(status=404, text=json.dumps(refused), content_type="application/json")


async def _streamed(http: web.Request, api: AgentApi, request: AgentRequest, turn: ModelTurn) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await answer.prepare(http)
    for event in api.stream(request, turn):
        await answer.write(event)
    await answer.write_eof()
    return answer
