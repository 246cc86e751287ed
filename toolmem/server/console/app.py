"""The routes of the console: pages by GET, changes by POST, signing in, and its static files."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from toolmem import __version__
from toolmem.errors import Conflict, RequestError, ToolMemError
from toolmem.memory.toolmem import ToolMem, Workspace
from toolmem.pages.html import environment
from toolmem.server.access import Access, Refused, read_body
from toolmem.server.console.call_views import logged_call
from toolmem.server.console.changes import TOLD, change
from toolmem.server.console.tables import TABLES, csv_of
from toolmem.server.console.views import VIEWS
from toolmem.server.console.visitors import Visit, Visitors
from toolmem.text.display import plain

log = logging.getLogger("toolmem.server")
Run = Callable[[Callable[[], Response]], Awaitable[Response]]

MAX_FORM = 64 << 10  # bytes
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NO_FRAME: dict[str, Any] = {"workspace": "", "workspaces": [], "waiting_count": 0}
STATIC = {
    "page.css": ("toolmem.pages", "templates/page.css", "text/css"),
    "console.css": (__package__, "static/console.css", "text/css"),
    "icon.svg": (__package__, "static/icon.svg", "image/svg+xml"),
    "console.js": (__package__, "static/console.js", "text/javascript"),
}


class Console:
    """The pages over one memory. `run`: runs blocking work in a thread."""

    def __init__(self, memory: ToolMem, access: Access, run: Run, code: str = "") -> None:
        self.memory, self.run = memory, run
        self.visitors = Visitors(access, code)
        self._templates = environment("toolmem.server.console")
        self._waiting: dict[str, tuple[str, int]] = {}  # by workspace: the rules' stamp, the count

    def routes(self) -> list[Route]:
        """Changes are posted below /w/, where no flow or operation is."""
        guarded = self._guarded
        return [
            Route("/", guarded(self._start)),
            Route("/sign-in", guarded(self._sign_in, signs_in=True), methods=["GET", "POST"]),
            Route("/static/{name}", self._static),
            Route("/w/{workspace}/rule", guarded(self._change), methods=["POST"]),
            Route("/w/{workspace}/decision", guarded(self._change), methods=["POST"]),
            Route("/w/{workspace}/call.txt", guarded(self._raw_call)),
            *(Route(f"/w/{{workspace}}/{n}.csv", guarded(partial(self._csv, n))) for n in TABLES),
            *(Route(f"/w/{{workspace}}/{n}", guarded(partial(self._page, n))) for n in VIEWS),
        ]

    def _guarded(
        self, work: Callable[[Request, Visit, bytes], Response], *, signs_in: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that knows its visitor, answers errors as a page, and sets headers."""

        async def endpoint(request: Request) -> Response:
            try:
                visit = self.visitors.visit_of(request)
            except Refused as error:
                visit = self.visitors.begin("")
                if error.status == 401 and not signs_in:
                    return RedirectResponse(f"/sign-in?{_then(request)}", 303, HEADERS)
                if error.status != 401:
                    return PlainTextResponse(str(error), error.status, HEADERS)
            try:
                body = await read_body(request.stream(), MAX_FORM, f"{MAX_FORM >> 10} kB")
            except Refused as error:
                return PlainTextResponse(str(error), error.status, HEADERS)
            response = await self.run(lambda: self._answer(work, request, visit, body))
            if "set-cookie" not in response.headers:
                self.visitors.remember(visit, request, response)
            response.headers.update(HEADERS)
            return response

        return endpoint

    def _answer(
        self,
        work: Callable[[Request, Visit, bytes], Response],
        request: Request,
        visit: Visit,
        body: bytes,
    ) -> Response:
        try:
            return work(request, visit, body)
        except (Refused, ToolMemError) as error:
            status = error.status if isinstance(error, Refused) else 500
            status = 422 if isinstance(error, RequestError) else status
            if status >= 500:
                log.error("%s: %s", plain(request.url.path, 200), error)
            status = 409 if isinstance(error, Conflict) else status
            shown = {"message": str(error), "back": getattr(error, "back", "")}
            return self._render("problem", request, visit, shown, status)

    def _workspace(self, request: Request) -> Workspace:
        name = request.path_params.get("workspace") or self.memory.workspace_id
        return self.memory.workspace(name)

    def _start(self, request: Request, visit: Visit, body: bytes) -> Response:
        found, own = self.memory.services.store().workspaces(), self.memory.workspace_id
        name = own if own in found or not found else found[0]
        return RedirectResponse(f"/w/{quote(name, safe='')}/", 303)

    def _page(self, name: str, request: Request, visit: Visit, body: bytes) -> Response:
        shown = VIEWS[name](self._workspace(request), dict(request.query_params))
        return self._render(name or "home", request, visit, shown)

    def _render(
        self, name: str, request: Request, visit: Visit, shown: dict[str, Any], status: int = 200
    ) -> Response:
        query = dict(request.query_params)
        workspace = request.path_params.get("workspace") or self.memory.workspace_id
        root = f"/w/{quote(workspace, safe='')}/"

        def url(page: str = "", /, **given: Any) -> str:
            kept = {key: value for key, value in given.items() if value not in (None, "")}
            return root + page + (f"?{urlencode(kept)}" if kept else "")

        kept = {k: v for k, v in query.items() if k not in ("from", "before", "told")}

        def here(**changed: Any) -> str:
            """This page with other filters; it begins at its first row again."""
            return url("" if name == "home" else name, **(kept | changed))

        text = self._templates.get_template(f"{name}.html.j2").render(
            **shown,
            **(NO_FRAME if name == "sign_in" else self._frame(request)),
            page=name,
            url=url,
            tool_url=lambda tool: url("tool", name=tool),
            failed_url=lambda tool: url("calls", tool=tool, outcome="failed"),
            here=here,
            csv=lambda file: url(file, **kept),
            query=defaultdict(str, query),
            visit=visit,
            told=TOLD.get(query.get("told", ""), ""),
            visitors=self.visitors,
            version=__version__,
        )
        return Response(text.encode("utf-8", "replace"), status, media_type="text/html")

    def _frame(self, request: Request) -> dict[str, Any]:
        """What stands around a page; nothing where the store fails or the name is no workspace."""
        try:
            workspace = self._workspace(request)
            name, every = workspace.workspace_id, workspace.services.store().workspaces()
            count = self._count_waiting(workspace) if name in every else 0
        except ToolMemError:
            return NO_FRAME
        return {"workspace": name, "workspaces": every, "waiting_count": count}

    def _count_waiting(self, workspace: Workspace) -> int:
        """Count the rules that wait for the user, again only where a rule was written since."""
        name = workspace.workspace_id
        stamp = workspace.services.store().get_many(name, []).rules_stamp
        if self._waiting.get(name, ("",))[0] != stamp or not stamp:
            self._waiting[name] = (stamp, len(workspace.rules.requests()))
        return self._waiting[name][1]

    def _change(self, request: Request, visit: Visit, body: bytes) -> Response:
        form = _form(body)
        self.visitors.require_own_form(request, visit, form)
        actor = visit.actor(form.get("do", ""))
        return RedirectResponse(change(self._workspace(request), form, actor), 303)

    def _csv(self, name: str, request: Request, visit: Visit, body: bytes) -> Response:
        text = csv_of(name, self._workspace(request), dict(request.query_params))
        headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        content = text.encode("utf-8", "replace")
        return Response(content, headers=headers, media_type="text/csv; charset=utf-8")

    def _raw_call(self, request: Request, visit: Visit, body: bytes) -> Response:
        text = logged_call(self._workspace(request), request.query_params).call.output
        headers = {"Content-Disposition": 'attachment; filename="output.txt"'}
        return PlainTextResponse(text.encode("utf-8", "replace"), headers=headers)

    def _sign_in(self, request: Request, visit: Visit, body: bytes) -> Response:
        if request.method == "GET":
            return self._render("sign_in", request, visit, {"failed": False})
        form = _form(body)
        new = self.visitors.sign_in(form.get("secret", ""))
        if new is None:
            return self._render("sign_in", request, visit, {"failed": True}, 403)
        then = form.get("then", "")
        response = RedirectResponse(then if then.startswith("/w/") else "/", 303)
        self.visitors.remember(new, request, response)
        return response

    async def _static(self, request: Request) -> Response:
        found = STATIC.get(request.path_params["name"])
        if found is None:
            return PlainTextResponse("not found", 404)
        package, path, kind = found
        headers = {"Cache-Control": "max-age=86400", "X-Content-Type-Options": "nosniff"}
        return Response(files(package).joinpath(path).read_bytes(), 200, headers, kind)


def _then(request: Request) -> str:
    """Where signing in leads, as a query: to the page that was asked for."""
    if request.method != "GET":
        return ""
    query = f"?{request.url.query}" if request.url.query else ""
    return urlencode({"then": request.url.path + query})


def _form(body: bytes) -> dict[str, str]:
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
