"""The flows over HTTP: `POST /<flow>`, `POST /rpc` for JSON-RPC, `GET /health`, `GET /docs`, `GET /openapi.json`.

`application(app, access)` is an ASGI application; `running` serves it. The layers of a request:
`AccessLog` (one line each, and an answer whatever happens), CORS where it is configured, `AccessLayer` (host, token,
how many at once), and FastAPI's routes. Requests are checked by the flows themselves, so that HTTP, the command line
and Python refuse the same with the same words; the OpenAPI document is made from what they check.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Union

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from toolmem import __version__
from toolmem.app import ToolMemApp
from toolmem.errors import StoreError
from toolmem.flow.checks import WORKSPACE_KEY, WORKSPACE_PATTERN
from toolmem.models import FlowResponse
from toolmem.operations.health import Health, health
from toolmem.operations.table import rpc_operations
from toolmem.rules.speakers import speaking_as
from toolmem.server.http import openapi
from toolmem.server.http.access import AccessControl
from toolmem.server.http.access_layer import AccessLayer
from toolmem.server.http.access_log import AccessLog, note_workspaces
from toolmem.server.http.limits import Limits, Unreadable
from toolmem.server.http.responses import (
    JsonAnswer,
    answered,
    failed,
    no_such_flow,
    nothing_at_the_root,
    refusal,
)
from toolmem.server.http.user_token import WANTED, UserToken, deletes
from toolmem.server.json_text import write_json
from toolmem.server.rpc import RpcService

HEALTH = health.address
_BEARER = {"WWW-Authenticate": "Bearer"}
_ABOUT = """\
Tool memory for agents: what works, and what the user demands. `POST /<flow>` runs a flow; its answer is a FlowResponse
whatever comes of it. `POST /rpc` takes JSON-RPC 2.0.
"""


def application(app: ToolMemApp, access: AccessControl) -> ASGIApp:
    """The service over an app, which the caller opens and closes."""
    http = app.settings.http
    inner: ASGIApp = AccessLayer(
        _routes(app, access), access, origins=http.cors_origins, limit=http.limit_concurrency, always_up=HEALTH
    )
    if http.cors_origins:
        from starlette.middleware.cors import CORSMiddleware

        inner = CORSMiddleware(
            inner,
            allow_origins=http.cors_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return AccessLog(inner)


def _routes(app: ToolMemApp, access: AccessControl) -> FastAPI:
    token = HTTPBearer(auto_error=False, scheme_name="token")  # described alone: `AccessLayer` looks at it
    routes = FastAPI(
        title="toolmem",
        description=_ABOUT,
        version=__version__,
        dependencies=[] if access.token is None else [Depends(token)],
        responses=openapi.refusals(openapi.BEFORE_ANY),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    routes.router.route_class = openapi.Route
    routes.add_exception_handler(HTTPException, _unrouted(app))
    routes.add_exception_handler(Unreadable, _unreadable)
    routes.add_exception_handler(Exception, _broken)
    limits, users = Limits.of(app.settings.http), UserToken(app, access)
    for name in app.flows:
        _add_flow(routes, app, name, limits, users)
    asked: Any = Union[(*map(openapi.rpc_request, rpc_operations()), list[Any], Any)]  # anything is answered
    routes.add_api_route(
        "/rpc",
        openapi.endpoint(_rpc(app, limits, users), asked, openapi.RPC_EXAMPLES),
        methods=["POST"],
        summary="JSON-RPC 2.0 over rules and memories",
        description=openapi.RPC_DESCRIPTION,
        operation_id="rpc",
        tags=["rules"],
        responses=openapi.RPC_ANSWERS,
    )
    answer = _health(app, access)
    told = "The store answers. Where a token is configured, a request without it is told the status alone."
    routes.add_api_route(
        HEALTH,
        openapi.endpoint(answer),
        methods=["GET"],
        summary=health.description,
        operation_id="health",
        tags=["service"],
        response_model=Health,
        response_description=told,
        openapi_extra={} if access.token is None else {"security": [{}]},
    )
    routes.add_route(HEALTH, answer, methods=["HEAD"], include_in_schema=False)
    _add_pages(routes)
    return routes


def _add_flow(routes: FastAPI, app: ToolMemApp, name: str, limits: Limits, users: UserToken) -> None:
    settings = app.settings.flow[name]
    model = openapi.request_model(f"{name}_request", settings.input_schema, most=limits.items)
    routes.add_api_route(
        f"/{name}",
        openapi.endpoint(_flow(app, name, limits, users), model),
        methods=["POST"],
        summary=settings.description or name,
        operation_id=name,
        tags=["flows"],
        response_model=FlowResponse,
        response_description=openapi.FLOW_DONE,
        responses=openapi.refusals(openapi.OF_A_FLOW),
    )


def _add_pages(routes: FastAPI) -> None:
    """`/openapi.json`, and the same for people at `/docs`."""

    async def as_json(request: Request) -> Response:
        return JsonAnswer(write_json(routes.openapi()))

    async def as_page(request: Request) -> Response:
        return openapi.page()

    routes.add_route("/openapi.json", as_json, methods=["GET"])
    routes.add_route("/docs", as_page, methods=["GET"])
    routes.mount(openapi.PAGE_FILES, openapi.page_files())


def _flow(app: ToolMemApp, name: str, limits: Limits, users: UserToken) -> openapi.Answer:
    async def run(request: Request) -> Response:
        body = await limits.request_of(await limits.read(request.scope, request.receive))
        if deletes(name, body) and await users.is_missing(request.scope["headers"]):
            return refusal(401, WANTED, kind="Unauthorized", headers=_BEARER)
        workspace = body.get(WORKSPACE_KEY)
        if isinstance(workspace, str) and WORKSPACE_PATTERN.fullmatch(workspace):
            note_workspaces(request.scope, [workspace])
        try:
            with speaking_as("program"):
                return answered(await app.run_flow(name, **body))
        except Exception as error:
            return failed(error)

    return run


def _rpc(app: ToolMemApp, limits: Limits, users: UserToken) -> openapi.Answer:
    service = RpcService(app.services, max_batch=limits.items)

    async def run(request: Request) -> Response:
        refused = False

        async def held() -> str:
            nonlocal refused
            missing = await users.is_missing(request.scope["headers"])
            refused |= missing
            return WANTED if missing else ""

        body = await limits.read(request.scope, request.receive)
        workspaces: set[str] = set()
        answer = await service.dispatch(body, workspaces, held)
        note_workspaces(request.scope, workspaces)
        if refused:
            return JsonAnswer(answer or "{}", status_code=401, headers=_BEARER)
        return Response(status_code=204) if answer is None else JsonAnswer(answer)

    return run


def _health(app: ToolMemApp, access: AccessControl) -> openapi.Answer:
    async def run(request: Request) -> Response:
        known = access.knows(request.scope["headers"])
        try:
            told = await health.run(app.services, {})
        except StoreError as error:
            return failed(error) if known else refusal(503, "the store cannot be used", kind=type(error).__name__)
        return JsonAnswer(write_json(told if known else {"status": told["status"]}))

    return run


async def _unreadable(request: Request, error: Exception) -> Response:
    assert isinstance(error, Unreadable)
    return error.answer


async def _broken(request: Request, error: Exception) -> Response:
    return failed(error)


def _unrouted(app: ToolMemApp) -> Callable[[Request, Exception], Awaitable[Response]]:
    """What no route takes: an unknown address, or another method."""

    async def answer(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        path, headers = request.scope["path"], error.headers or {}
        if error.status_code == 404 and path == "/":
            return nothing_at_the_root(app.flows)
        if error.status_code == 404:
            return no_such_flow(path.strip("/"), app.flows, app.configured.left_out)
        if error.status_code == 405:
            message = f"{request.method}: expected {headers.get('Allow', 'POST')}"
            return refusal(405, message, kind="MethodNotAllowed", headers=headers)
        return refusal(error.status_code, str(error.detail), headers=headers)

    return answer
