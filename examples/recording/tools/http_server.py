"""The HTTP API on loopback that `http_request` and `get_weather` talk to: a real server in a thread.

Its rate limit and its outages follow the scripted clock, so that a recording can be made again; its delays are real.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict
from datetime import date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from examples.recording.clock import ScriptedClock
from examples.recording.tools.http_routes import Reply, ShopRoutes, weather

RATE_LIMIT = 4  # requests of one client
RATE_WINDOW = 60.0  # seconds of the scripted clock


class ApiServer:
    """Start it with `start()`; `port` is the machine's choice. One rate limit per client name."""

    def __init__(
        self, routes: ShopRoutes, clock: ScriptedClock, *, outage_days: frozenset[date], weather_changes_on: date
    ) -> None:
        self._routes = routes
        self._clock = clock
        self._outage_days = outage_days
        self._weather_changes_on = weather_changes_on
        self._seen: dict[str, list[datetime]] = defaultdict(list)
        self._outage_requests = 0
        api = self

        class Handler(_Handler):
            server_api = api

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, target: str, body: Any, client: str) -> Reply:
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        today = self._clock.now().date()
        if parts.path == "/weather":
            return weather(query, today, strict_units=today >= self._weather_changes_on)
        wait = self._seconds_to_wait(client)
        if wait > 0:
            error = {"code": "rate_limited", "message": f"more than {RATE_LIMIT} requests in {RATE_WINDOW:.0f} s"}
            return Reply(429, {"error": error, "retry_after": wait})
        if today in self._outage_days:
            # Two of three requests fail, as behind a balancer with one healthy machine.
            self._outage_requests += 1
            if self._outage_requests % 3:
                return Reply(
                    503, "<html><head><title>503 Service Unavailable</title></head><body>upstream</body></html>"
                )
        return self._routes.answer(method, parts.path, query, body)

    def _seconds_to_wait(self, client: str) -> int:
        now = self._clock.now()
        recent = [moment for moment in self._seen[client] if now - moment < timedelta(seconds=RATE_WINDOW)]
        self._seen[client] = recent
        if len(recent) >= RATE_LIMIT:
            return int(RATE_WINDOW - (now - recent[0]).total_seconds()) + 1
        recent.append(now)
        return 0


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that stopped waiting is part of the script: nothing to print."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server_api: ApiServer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        body = json.loads(raw) if raw else None
        reply = self.server_api.answer(self.command, self.path, body, self.headers.get("X-Client", ""))
        if reply.hang_up:
            self.close_connection = True
            return
        time.sleep(reply.delay)
        text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body, ensure_ascii=False)
        payload = text.encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", "text/html" if isinstance(reply.body, str) else "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815
