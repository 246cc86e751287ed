"""The routes of the console: pages by GET, changes by POST, signing in, and its static files.

Pages are in English, and in Chinese where the browser prefers it.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from toolmem import __version__
from toolmem.errors import ToolMemError
from toolmem.memory.toolmem import ToolMem, Workspace
from toolmem.pages.html import environment
from toolmem.server.access import Access, Refused, read_body, status_of
from toolmem.server.console.call_views import logged_call
from toolmem.server.console.changes import NOTICES, Retries, change
from toolmem.server.console.tables import TABLES, csv_of
from toolmem.server.console.views import VIEWS
from toolmem.server.console.visitors import Terminal, Visit, Visitors, cookie_name, set_cookie
from toolmem.text.display import plain

log = logging.getLogger("toolmem.server")
Run = Callable[[Callable[[], Response]], Awaitable[Response]]
Work = Callable[[Request, Visit, bytes], Response]
Endpoint = Callable[[Request], Awaitable[Response]]

MAX_FORM = 64 << 10  # bytes
MAX_FIELDS = 100  # of a form
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept-Language",
}
NO_FRAME: dict[str, Any] = {"workspace": "", "workspaces": [], "waiting_count": 0}
STATIC = {
    "page.css": ("toolmem.pages", "templates/page.css", "text/css"),
    "console.css": (__package__, "static/console.css", "text/css"),
    "icon.svg": (__package__, "static/icon.svg", "image/svg+xml"),
    "console.js": (__package__, "static/console.js", "text/javascript"),
}


class Console:
    """The console of one memory. `run`: runs a blocking function in a thread."""

    def __init__(
        self,
        memory: ToolMem,
        access: Access,
        run: Run,
        terminal: Terminal | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self.memory = memory
        self.run = run
        self.visitors = Visitors(access, terminal, read_only=read_only)
        self.missing = self._guarded(self._missing)
        self._retries = Retries()
        self._templates = _environments()
        self._waiting: dict[str, tuple[str, int]] = {}  # by workspace: the rules' stamp, the count

    def routes(self) -> list[BaseRoute]:
        """Return the routes. Pages are below /w/, and for a signed-in visit below /v/{key}/w/."""
        guarded = self._guarded
        pages = [
            Route("/", guarded(self._first_page)),
            Route("/sign-out", guarded(self._sign_out), methods=["POST"]),
            Route("/w/{workspace}/rule", guarded(self._change), methods=["POST"]),
            Route("/w/{workspace}/decision", guarded(self._change), methods=["POST"]),
            Route("/w/{workspace}/retry", guarded(self._retry), methods=["POST"]),
            Route("/w/{workspace}/call.txt", guarded(self._raw_call)),
            *(Route(f"/w/{{workspace}}/{n}.csv", guarded(partial(self._csv, n))) for n in TABLES),
            *(Route(f"/w/{{workspace}}/{n}", guarded(partial(self._page, n))) for n in VIEWS),
            Route("/w/{path:path}", self.missing, methods=["GET", "POST"]),
        ]
        return [
            Route("/sign-in", guarded(self._sign_in, signs_in=True), methods=["GET", "POST"]),
            Route("/static/{name}", self._static),
            *pages,
            Mount("/v/{key}", routes=[*pages, Route("/{path:path}", self.missing)]),
        ]

    def _guarded(self, work: Work, *, signs_in: bool = False) -> Endpoint:
        """Make an endpoint that finds the visit, answers errors as a page, and sets headers."""

        async def endpoint(request: Request) -> Response:
            visit = self.visitors.visit_of(request)
            body = b""
            refused = None
            try:
                self.visitors.require_reader(request, visit)
            except Refused as error:
                if error.status != 401:
                    refused = error
                elif request.method == "POST" and not signs_in:
                    refused = Refused(403, "Sign in first. Nothing was changed.")
                elif not signs_in:
                    return RedirectResponse(f"/sign-in?{_return_query(request)}", 303, HEADERS)
            try:
                body = await read_body(request.stream(), MAX_FORM, f"{MAX_FORM >> 10} kB")
            except Refused as error:
                refused = error
            response = await self.run(lambda: self._answer(work, request, visit, body, refused))
            response.headers.update(HEADERS)
            return response

        return endpoint

    def _answer(
        self, work: Work, request: Request, visit: Visit, body: bytes, refused: Refused | None
    ) -> Response:
        back = ""
        try:
            if refused is not None:
                raise refused
            return work(request, visit, body)
        except (Refused, ToolMemError) as error:
            status = status_of(error)
            message = str(error)
            back = getattr(error, "back", "")
            if status >= 500:
                log.error("%s: %s", plain(_path(request), 200), error)
        except Exception:
            log.exception("%s: a page failed", plain(_path(request), 200))
            status = 500
            message = ""
        shown = {"message": message, "status": status, "back": back}
        return self._render("problem", request, visit, shown, status)

    def _missing(self, request: Request, visit: Visit, body: bytes) -> Response:
        if request.method == "POST":
            self.visitors.require_may_change(visit)
        raise Refused(404, "")

    def _workspace(self, request: Request) -> Workspace:
        """The workspace of a page. Raises Refused if the store does not have it."""
        own = self.memory.workspace_name
        name = request.path_params.get("workspace") or own
        found = self.memory.workspace(name)
        if name != own and name not in self.memory.services.store().workspaces():
            raise Refused(404, f"The store has no workspace {name!r}.")
        return found

    def _first_page(self, request: Request, visit: Visit, body: bytes) -> Response:
        found = self.memory.services.store().workspaces()
        own = self.memory.workspace_name
        name = own if own in found or not found else found[0]
        return RedirectResponse(_root(visit, name), 303)

    def _page(self, name: str, request: Request, visit: Visit, body: bytes) -> Response:
        shown = VIEWS[name](self._workspace(request), dict(request.query_params))
        return self._render(name or "home", request, visit, shown)

    def _render(
        self, name: str, request: Request, visit: Visit, shown: dict[str, Any], status: int = 200
    ) -> Response:
        query = dict(request.query_params)
        workspace = request.path_params.get("workspace") or self.memory.workspace_name
        root = _root(visit, workspace)

        def url(page: str = "", /, **given: Any) -> str:
            kept = {key: value for key, value in given.items() if value not in (None, "")}
            return root + page + (f"?{urlencode(kept)}" if kept else "")

        is_led = visit.was_sent_to(f"{name}?{urlencode(query)}")
        kept = {k: v for k, v in query.items() if k not in ("from", "before", "told")}

        def here(**changed: Any) -> str:
            """Return a link to this page with changed filters, from its first row."""
            return url("" if name == "home" else name, **(kept | changed))

        language = preferred_language(request.headers.get("accept-language", ""))
        template = self._templates[language].get_template(f"{name}.html.j2")
        text = template.render(
            **shown,
            **self._frame(request, visit),
            language=language,
            page=name,
            url=url,
            root_of=partial(_root, visit),
            sign_in="/sign-in"
            if name == "sign_in"
            else f"/sign-in?{_return_query(request)}".rstrip("?"),
            sign_out=f"{_prefix(visit)}/sign-out",
            tool_url=lambda tool: url("tool", name=tool),
            calls_url=lambda tool, outcome: url("calls", tool=tool, outcome=outcome),
            here=here,
            csv=lambda file: url(file, **kept),
            query=defaultdict(str, query),
            visit=visit,
            retry=self._retries.newest(workspace),
            notice=NOTICES.get(query.get("told", ""), "") if is_led else "",
            visitors=self.visitors,
            version=__version__,
        )
        return Response(text.encode("utf-8", "replace"), status, media_type="text/html")

    def _frame(self, request: Request, visit: Visit) -> dict[str, Any]:
        """Read the header's values; NO_FRAME if reading is not allowed or the store fails."""
        try:
            self.visitors.require_reader(request, visit)
            workspace = self._workspace(request)
            name = workspace.workspace_name
            every = workspace.services.store().workspaces()
            count = self._count_waiting(workspace) if name in every else 0
        except (Refused, ToolMemError):
            return NO_FRAME
        return {"workspace": name, "workspaces": every, "waiting_count": count}

    def _count_waiting(self, workspace: Workspace) -> int:
        """Count the requests that wait for the user. The count is kept until a rule is written."""
        name = workspace.workspace_name
        stamp = workspace.services.store().get_many(name, []).rules_stamp
        if not stamp or self._waiting.get(name, ("",))[0] != stamp:
            self._waiting[name] = (stamp, len(workspace.rules.requests()))
        return self._waiting[name][1]

    def _change(self, request: Request, visit: Visit, body: bytes) -> Response:
        self.visitors.require_may_change(visit)
        form = _form(body)
        self.visitors.require_own_form(request, visit, form)
        with visit.lock:
            location = visit.location_of(body)
            if not location:
                actor = visit.actor(form.get("do", ""))
                location = change(self._workspace(request), form, actor)
                visit.keep_location(body, location)
                visit.allow_changes()
        return RedirectResponse(location, 303)

    def _retry(self, request: Request, visit: Visit, body: bytes) -> Response:
        self.visitors.require_may_change(visit)
        self.visitors.require_own_form(request, visit, _form(body))
        self._retries.start(self._workspace(request))
        return RedirectResponse("./", 303)

    def _csv(self, name: str, request: Request, visit: Visit, body: bytes) -> Response:
        text = csv_of(name, self._workspace(request), dict(request.query_params))
        headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        content = text.encode("utf-8-sig", "replace")  # Excel needs the mark to read UTF-8
        return Response(content, headers=headers, media_type="text/csv; charset=utf-8")

    def _raw_call(self, request: Request, visit: Visit, body: bytes) -> Response:
        text = logged_call(self._workspace(request), request.query_params).call.output
        headers = {"Content-Disposition": 'attachment; filename="output.txt"'}
        return PlainTextResponse(text.encode("utf-8", "replace"), headers=headers)

    def _sign_in(self, request: Request, visit: Visit, body: bytes) -> Response:
        if request.method == "POST":
            return self._begin_visit(request, visit, body)
        own = self.visitors.by_cookie(request)
        state = ""
        words = ""
        if own and request.query_params.get("wait") == own.wait:
            if own.level:
                return RedirectResponse(_prefix(own) + own.then, 303)
            words = own.words
            state = "asked" if words else "refused"
        response = self._render("sign_in", request, visit, _sign_in_values(state, words))
        if state == "asked":
            response.headers["Refresh"] = "2"  # accessibility checkers reject the tag in a page
        return response

    def _begin_visit(self, request: Request, visit: Visit, body: bytes) -> Response:
        """Sign in. If the terminal must confirm, redirect to a page that waits for it."""
        self.visitors.require_own_page(request)
        form = _form(body)
        then = form.get("then", "")
        if not then.startswith("/w/"):
            then = "/"
        secret = form.get("secret", "").rpartition("/sign-in?code=")[2]  # the link, or the code
        new = self.visitors.sign_in(secret, form.get("form", ""), then)
        if new is None:
            return self._render("sign_in", request, visit, _sign_in_values("wrong"), 403)
        former = self.visitors.by_cookie(request)
        if new is not former:
            self.visitors.end(former)
        waiting = f"/sign-in?{urlencode({'wait': new.wait})}"
        response = RedirectResponse(_prefix(new) + new.then if new.level else waiting, 303)
        set_cookie(new, request, response)
        return response

    def _sign_out(self, request: Request, visit: Visit, body: bytes) -> Response:
        self.visitors.require_own_form(request, visit, _form(body))
        self.visitors.end(visit)
        response = RedirectResponse("/", 303)
        response.delete_cookie(cookie_name(request), httponly=True, samesite="strict")
        return response

    async def _static(self, request: Request) -> Response:
        found = STATIC.get(request.path_params["name"])
        if found is None:
            return PlainTextResponse("not found", 404)
        package, path, kind = found
        headers = {"Cache-Control": "max-age=86400", "X-Content-Type-Options": "nosniff"}
        return Response(files(package).joinpath(path).read_bytes(), 200, headers, kind)


def _environments() -> dict[str, Any]:
    """The environment of templates for each language. `zh.json` maps English texts to Chinese."""
    chinese = json.loads(files(__package__).joinpath("templates/zh.json").read_text("utf-8"))
    package = "toolmem.server.console"
    return {"en": environment(package), "zh": environment(package, chinese)}


def preferred_language(accepted: str) -> str:
    """Return `zh` if the Accept-Language header prefers any Chinese to English, else `en`."""
    preferred = "en"
    highest = 0.0
    for each in accepted.lower().split(","):
        tag, _, weight = each.replace(" ", "").partition(";q=")
        name = tag.partition("-")[0]
        try:
            quality = float(weight or 1)
        except ValueError:
            continue
        if name in ("en", "zh") and quality > highest:
            preferred = name
            highest = quality
    return preferred


def _return_query(request: Request) -> str:
    """Return a query for the sign-in address, so that it leads back to the requested page."""
    if request.method != "GET":
        return ""
    query = f"?{request.url.query}" if request.url.query else ""
    return urlencode({"then": _path(request) + query})


def _path(request: Request) -> str:
    """Return the requested path without the `/v/{key}` of a visit."""
    return request.url.path.removeprefix(request.scope.get("root_path", ""))


def _prefix(visit: Visit) -> str:
    """Return the beginning of the paths of a visit's pages: `/v/{key}`, or "" without a key."""
    return f"/v/{visit.key}" if visit.key else ""


def _root(visit: Visit, workspace: str) -> str:
    return f"{_prefix(visit)}/w/{quote(workspace, safe='')}/"


def _form(body: bytes) -> dict[str, str]:
    """The fields of a form. Raises Refused."""
    try:
        text = body.decode()
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:  # also UnicodeDecodeError
        raise Refused(400, "This is no form of these pages. Nothing was changed.") from None
    return dict(pairs)


def _sign_in_values(state: str, words: str = "") -> dict[str, str]:
    """The values of the page to sign in. `state`: "", asked, refused or wrong."""
    return {"state": state, "words": words, "form": secrets.token_hex(16)}
