"""The distributed store over Elasticsearch."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from toolmem.errors import Conflict, RequestError, StoreUnavailable, wrong
from toolmem.models.calls import ToolCallResult
from toolmem.models.tools import LoggedCall, ToolRecord, Window
from toolmem.store.base import LogQuery, SeqsOf
from toolmem.store.changes import DELETED, Update
from toolmem.store.elasticsearch.client import Client
from toolmem.store.elasticsearch.layout import SYSTEM, Layout, terms
from toolmem.store.elasticsearch.search import SearchStore
from toolmem.store.elasticsearch.tool_calls import FoundTool, Stale, Tools
from toolmem.store.storable import GUIDANCE, read_log, searched_text

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

MAX_SEARCHED = 10_000  # calls read at once in a search for a text or ids
MAX_POSITION = 2**63 - 1
_SECRET = (SYSTEM, SYSTEM, "secret_key")


class ElasticsearchStore(SearchStore):
    """A store in Elasticsearch. Threads may share it; a forked process must open its own.

    What a method writes to one tool is one commit. The first request creates missing indices.
    """

    location = untrusted = ""  # whoever may write to the server may write to the store

    def __init__(
        self,
        hosts: str | Sequence[str] = "http://localhost:9200",
        *,
        basic_auth: str | Sequence[str] = "",
        index_prefix: str = "toolmem",
        mask: bool = True,
        timeout: float = 30.0,
        client: Elasticsearch | None = None,
    ) -> None:
        """`basic_auth`: user and password, as two values or as `user:password`.

        `mask`: replace secrets in calls before they are stored. `timeout`: seconds for a request
        with all its attempts. `client`: used instead of a new one; turn its own retries off.
        Messages name it by `hosts`.
        """
        urls = [hosts] if isinstance(hosts, str) else list(hosts)
        self.location = ", ".join(_without_credentials(each) for each in urls)
        self._mask = mask

        def connect() -> Elasticsearch:
            from elasticsearch import Elasticsearch

            return client or Elasticsearch(
                urls,
                basic_auth=_credentials(basic_auth),
                request_timeout=timeout / 2,
                max_retries=0,
                retry_on_timeout=False,
            )

        self._client = Client(connect, self.location, timeout)
        self._layout = Layout(self._client, index_prefix)
        self._client.prepare = self._layout.prepare
        self._tools = Tools(self._client, self._layout)
        self._secret_key = b""
        self._losses = {}

    def close(self) -> None:
        self._client.close()

    def transaction(self, wait: float | None = None) -> AbstractContextManager[None]:
        """Does nothing, because each write is a commit of its own."""
        return nullcontext()

    def secret_key(self) -> bytes:
        """Return the key of the hashes that mask secrets. The first call creates it."""
        if not self._secret_key:
            try:
                record = self.put(*_SECRET, os.urandom(32).hex(), expected_version=0)
            except Conflict:
                record = self.get(*_SECRET) or record
            self._secret_key = bytes.fromhex(record.read(str))
        return self._secret_key

    # ------------------------------------------------------------ tools

    def workspaces(self) -> list[str]:
        found: set[str] = set()
        for index in (self._layout.tools, self._layout.records):
            found.update(self._client.values(index, "workspace", terms(live=True)))
        return sorted(each for each in found if not each.startswith("."))

    def delete_workspace(self, workspace: str) -> int:
        tools = self.delete_tools(workspace)
        index = self._layout.records
        filters = terms(workspace=workspace, live=True)
        docs = list(self._client.scan(index, filters, ["namespace", "key"]))
        for doc in docs:
            if doc.source["namespace"] != GUIDANCE:
                self.delete(workspace, doc.source["namespace"], doc.source["key"])
        if docs:
            self._client.bulk([self._stamp(workspace)])
        return len(tools)

    def tool_names(self, workspace: str) -> list[str]:
        return list(self._tools.read_all(workspace))

    def records(
        self, workspace: str, names: Sequence[str] | None = None, *, guidance: bool = True
    ) -> list[ToolRecord]:
        if guidance:
            return [each.record for each in self.windows(workspace, names, recent=0)]
        return [each.state.record for each in self._read_tools(workspace, names)]

    def _read_tools(self, workspace: str, names: Sequence[str] | None) -> list[FoundTool]:
        if names is None:
            found = self._tools.read_all(workspace)
        else:
            found = self._tools.read(workspace, dict.fromkeys(names, ()))
        return [found[name] for name in names or found if found[name].exists]

    def _flushed_tools(self, workspace: str, names: Sequence[str] | None) -> list[FoundTool]:
        """Tools, after the documents of their forgotten calls were overwritten."""
        tools = self._read_tools(workspace, names)
        for each in tools:
            if any(entry.seq < 0 for entry, _ in each.outbox.values()):
                self.known_ids(workspace, each.tool, ())  # commits, and so writes the outbox
        return tools

    def _windows(
        self, workspace: str, names: Sequence[str] | None, chosen: SeqsOf, kind: Any
    ) -> list[Window[Any]]:
        for _ in self._client.attempts():  # until tools and their documents match
            tools = self._read_tools(workspace, names)
            with suppress(Stale):
                wanted = [(each, chosen(each.state.record)) for each in tools]
                self._tools.fetch(wanted, guidance=True)
                return [each.shown(kind) for each in tools]
        raise StoreUnavailable(
            f"Elasticsearch at {self.location}: a call that a tool keeps could not be read"
        )

    def known_ids(self, workspace: str, tool: str, ids: Collection[str]) -> set[str]:
        asked = list(ids)
        found = self._tools.read(workspace, {tool: asked})[tool]
        if not found.outbox:
            return found.known
        # An outbox may be of a commit that is undone later. Another commit confirms its ids.
        update = Update(lambda found: (None, found.known), asked)
        known: set[str] = self._commit(workspace, {tool: update})[tool]
        return known

    # ------------------------------------------------------------ writing

    def _commit(self, workspace: str, updates: Mapping[str, Update]) -> dict[str, Any]:
        answers = self._tools.commit(workspace, updates)
        for answer in answers.values():
            if isinstance(answer, Exception):
                raise answer
        return answers

    def delete_tools(self, workspace: str, names: Sequence[str] | None = None) -> list[str]:
        if names is None:
            names = self.tool_names(workspace)
        update = Update(lambda found: (DELETED, True) if found.exists else (None, False))
        is_gone = self._commit(workspace, dict.fromkeys(names, update))
        return [name for name in names if is_gone[name]]

    def _log_page(self, query: LogQuery) -> tuple[list[LoggedCall], int | None]:
        # A call stays in the outbox until its document is written, so tools are read first.
        tools = self._flushed_tools(query.workspace, query.tools)
        if not tools:
            return [], None
        is_search = bool(query.contains) or query.ids is not None  # texts and ids are not indexed
        size = MAX_SEARCHED if is_search else query.limit
        after, asked = query.after, query.conversations
        end = MAX_POSITION if query.before is None else query.before
        filters: list[Any] = [
            {"terms": {"stem": [each.state.stem for each in tools]}},
            {"range": {"position": {"gt": after, "lt": end}}},
        ]
        if asked is not None:
            filters.append({"terms": {"conversation": asked}})
        order = [{"position": "desc" if query.newest else "asc"}]
        fields = ["body", "position"]
        latest: dict[str, tuple[int, int, str]] = {  # version, position and body, by document
            doc.id: (doc.version, doc.source["position"], doc.source["body"])
            for doc in self._client.scan(self._layout.calls, filters, fields, order, size)
        }
        for found in tools:
            for entry, text in found.outbox.values():
                is_call = entry.seq and text
                is_in_range = after < entry.position < end
                is_asked = asked is None or entry.conversation in asked
                is_newer = entry.id not in latest or entry.version > latest[entry.id][0]
                if is_call and is_in_range and is_asked and is_newer:
                    latest[entry.id] = entry.version, entry.position, text
        rows = sorted(latest.values(), key=lambda each: each[1], reverse=query.newest)[:size]
        read_to = rows[-1][1] if len(rows) == size else None
        page = read_log((position, body) for _, position, body in rows)
        if is_search:
            text = searched_text(query.contains).lower()
            page = [each for each in page if _matches(each.call, text, query.ids)][: query.limit]
        return page[::-1] if query.newest else page, read_to


def _matches(call: ToolCallResult, text: str, ids: Collection[str] | None) -> bool:
    is_asked = ids is None or call.id in ids
    return is_asked and (not text or text in msgspec.json.encode(call).decode().lower())


def _without_credentials(url: str) -> str:
    """The URL of a host without credentials. Raises RequestError."""
    parts = urlsplit(url)
    with suppress(ValueError):  # the port may be no number
        if parts.scheme in ("http", "https") and parts.hostname and parts.port is not None:
            return f"{parts.scheme}://{parts.hostname}:{parts.port}"
    got = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    raise wrong("hosts", f"expected a URL with a port, such as http://localhost:9200, got {got!r}")


def _credentials(given: str | Sequence[str]) -> tuple[str, str] | None:
    parts = given.split(":", 1) if isinstance(given, str) else list(given)
    if parts in ([], [""]):
        return None
    if len(parts) != 2:
        raise RequestError("basic_auth: expected a user and a password", field="basic_auth")
    return parts[0], parts[1]
