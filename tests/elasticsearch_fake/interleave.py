"""Operations that stop at each request, so that a test decides who goes on and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from greenlet import greenlet

from elasticsearch_fake.client import FakeClient
from elasticsearch_fake.server import Bulk, Lost, Mget, Refresh, Rejected, Search, Server
from toolmem.store.elasticsearch import ElasticsearchStore

ATTEMPTS = 9
READ_FAULTS = ("stale", "dirty", "torn", "drop", "kill")
SEARCH_FAULTS = ("drop", "kill")
WRITE_FAULTS = ("lose", "twice", "again", "delay", "drop", "reject", "kill", "kill after", "part")
SWAP_FAULTS = (*WRITE_FAULTS, "doom")


class Killed(BaseException):
    """The process is gone."""


def open_store(send: Callable[[Any], Any]) -> ElasticsearchStore:
    """A store of a process of its own, which waits for nothing."""
    client: Any = FakeClient(send)
    store = ElasticsearchStore(index_prefix="p", mask=False, client=client)
    store._client.attempts = lambda longest=0: iter([None] * ATTEMPTS)  # type: ignore[method-assign]
    return store


def stopping_store() -> ElasticsearchStore:
    """Its requests go to the task that it works for."""
    return open_store(lambda request: greenlet.getcurrent().parent.switch(request))


def faults_of(request: Any) -> tuple[str, ...]:
    if isinstance(request, Bulk):
        return SWAP_FAULTS if request.is_swap else WRITE_FAULTS
    return READ_FAULTS if isinstance(request, Mget) else SEARCH_FAULTS


@dataclass
class Task:
    """One operation under way."""

    name: str
    work: Callable[[], Any]
    request: Any = None
    torn: list[Any] | None = None  # what was read already of a get of many
    stale: bool = False  # something that it read was an old copy, or doomed
    dirty: bool = False  # doomed
    absent: bool = False  # older than the tool: that there is none cannot be proved by a swap
    result: Any = None
    error: BaseException | None = None
    done: bool = False
    thread: greenlet = field(init=False)

    def __post_init__(self) -> None:
        self.thread = greenlet(self.work)
        self._go(self.thread.switch)

    def _go(self, go: Callable[[], Any]) -> None:
        self.torn = None
        try:
            came = go()
        except (Killed, Exception) as error:
            self.error, self.done, self.request = error, True, None
            return
        self.done = self.thread.dead
        self.result, self.request = (came, None) if self.done else (None, came)

    def answer(self, value: Any) -> None:
        self._go(lambda: self.thread.switch(value))

    def fail(self, error: BaseException) -> None:
        self._go(lambda: self.thread.throw(error))


@dataclass
class Network:
    """Between the tasks and the server."""

    server: Server
    limbo: list[Any] = field(default_factory=list)  # requests that act later, or never

    def deliver(self, number: int = 0) -> None:
        self.server.act(self.limbo.pop(number))

    def finish(self, task: Task) -> Any:
        """Nothing goes wrong any more."""
        while not task.done:
            self.step(task)
        if task.error is not None:
            raise task.error
        return task.result

    def step(self, task: Task, fault: str = "ok", amount: int = 1) -> None:
        """Carry out the request of a task."""
        request, server = task.request, self.server
        if fault == "ok" or fault not in faults_of(request):
            self._answer(task, request)
        elif fault == "kill":
            task.fail(Killed())
        elif fault == "drop":
            task.fail(Lost())
        elif fault == "reject":
            task.fail(Rejected())
        elif fault == "delay":
            self.limbo.append(request)
            task.fail(Lost())
        elif fault == "doom":
            server.doom(request)
            task.fail(Lost())
        elif fault in ("lose", "kill after"):
            server.act(request)
            task.fail(Lost() if fault == "lose" else Killed())
        elif fault == "part":
            task.answer(server.bulk(request, lambda number: (number + amount) % 2 == 0))
        elif fault in ("twice", "again"):
            answer = server.act(request)
            if fault == "again":
                self.limbo.append(request)
            task.answer(answer if fault == "again" else server.act(request))
        else:
            self._misread(task, request, fault, amount)

    def _answer(self, task: Task, request: Any) -> None:
        if task.torn is not None:
            task.answer([*self.server.mget(Mget(request.keys[:1])), *task.torn])
        else:
            task.answer(self.server.act(request))

    def _misread(self, task: Task, request: Mget, fault: str, amount: int) -> None:
        if fault == "torn":  # the later documents are read before the first one
            if len(request.keys) > 1 and task.torn is None:
                task.torn = self.server.mget(Mget(request.keys[1:]))
            else:
                self._answer(task, request)
            return
        task.stale, task.dirty = True, task.dirty or fault == "dirty"
        docs = self.server.mget(request, amount if fault == "stale" else 0, fault == "dirty")
        task.absent = task.absent or (request.keys[0][0] == "p-tools" and docs[0] is None)
        task.answer(docs)


def direct_store(server: Server) -> ElasticsearchStore:
    """Nothing goes wrong."""
    return open_store(server.act)


__all__ = ["Bulk", "Killed", "Mget", "Network", "Refresh", "Search", "Server", "Task"]
