"""A model's answer is read up to a bound, whatever it was compressed from."""

from __future__ import annotations

import gzip
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from toolmem.errors import ReplyBroken
from toolmem.providers.http_sessions import MAX_ANSWER

BOMB = gzip.compress(b'{"output": "' + b"0" * 400_000_000 + b'"}', compresslevel=1)


class _Bomb(BaseHTTPRequestHandler):
    status = 200
    asked = 0

    def do_POST(self) -> None:
        type(self).asked += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(BOMB)))
        self.end_headers()
        self.wfile.write(BOMB)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def bomb() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Bomb)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("status", [200, 400])
async def test_an_answer_that_grows_without_end_is_given_up(
    make_llm: Callable[..., Any], book: Any, bomb: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Bomb, "status", status)
    monkeypatch.setattr(_Bomb, "asked", 0)
    llm = make_llm(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(ReplyBroken, match=f"HTTP {status}, but the answer is larger than 32,000,000 bytes"):
            await llm.complete("a prompt", book.purpose())
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_ANSWER
    finally:
        tracemalloc.stop()
        await llm.close()
    assert _Bomb.asked == 1  # it is not asked again
