"""Keyed records, as far as every backend agrees: what can be kept, which version it gets, what is damaged."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolmem.errors import Conflict, RequestError, StoreError
from toolmem.late import late_logger
from toolmem.store.codec import CALL_FAULTS, dump_json, micros, moment, require_names, require_storable, unnameable
from toolmem.stored import Document, RawRecord, Record

if TYPE_CHECKING:
    from toolmem.protocols import Clock

logger = late_logger("toolmem.store")


class PutRecord:
    """A record on its way in. `text`: the JSON of its value."""

    def __init__(
        self,
        now: datetime,
        workspace: str,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        document: Document | None,
        expected_version: int | None,
    ) -> None:
        """Raises RequestError."""
        require_names(workspace)
        require_storable(namespace, "namespace")
        require_storable(key, "key")
        self.now = micros(now)
        self.workspace = workspace
        self.namespace = namespace
        self.key = key
        self.text = encode_value(value)
        self.document = document
        self._expected = expected_version

    def decide(self, held: RawRecord | None) -> RawRecord:
        """The record as it is to be. Raises Conflict."""
        version, born = (0, self.now) if held is None else (held.version, held.born)
        if self._expected is not None and self._expected != version:
            raise Conflict(
                f"workspace {self.workspace!r}: record {self.key!r} of {self.namespace!r} is at version {version}, "
                f"not at {self._expected}; read again and decide again"
            )
        return RawRecord(self.namespace, self.key, self.text, version + 1, born, self.now)


def encode_value(value: Mapping[str, Any]) -> str:
    """Raises RequestError where the value is no JSON object."""
    if not isinstance(value, Mapping):
        raise RequestError(f"value: expected a JSON object, got {type(value).__name__}", field="value")
    try:
        return dump_json(dict(value))
    except (ValueError, TypeError, RecursionError) as error:
        raise RequestError(f"value: cannot be kept as JSON: {error}", field="value") from error


def read_record(raw: RawRecord) -> Record:
    """Raises ValueError and its like where the record is damaged."""
    namespace, key, text, version, born, modified = raw
    value = json.loads(text)
    if not isinstance(value, dict) or version < 1:
        raise ValueError("not a record")
    return Record(namespace, key, value, version, moment(born), moment(modified))


class RecordStore:
    """Keyed records, in a store that gives `_put`, `_get` and `list_raw`."""

    _clock: Clock

    async def put(
        self,
        workspace: str,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        *,
        document: Document | None = None,
        expected_version: int | None = None,
    ) -> Record:
        record = PutRecord(self._clock.now(), workspace, namespace, key, value, document, expected_version)
        return read_record(await self._put(record))

    async def _put(self, record: PutRecord) -> RawRecord:
        """Decide on the version that is there, and write what was decided."""
        raise NotImplementedError

    async def get(self, workspace: str, namespace: str, key: str) -> Record | None:
        if unnameable(workspace, namespace, key):
            return None
        raw = await self._get(workspace, namespace, key)
        try:
            return None if raw is None else read_record(raw)
        except CALL_FAULTS as error:
            raise StoreError(
                f"workspace {workspace!r}: record {key!r} of {namespace!r} is damaged; put or delete it"
            ) from error

    async def _get(self, workspace: str, namespace: str, key: str) -> RawRecord | None:
        raise NotImplementedError

    async def list(self, workspace: str, namespace: str) -> builtins.list[Record]:
        found = []
        for raw in await self.list_raw(workspace, [namespace]):
            try:
                found.append(read_record(raw))
            except CALL_FAULTS:
                logger.error("record %r of %r is damaged and left out", raw.key, raw.namespace)
        return found

    async def list_raw(
        self, workspace: str, namespaces: Sequence[str] | None, *, prefix: str = "", key_prefix: str = ""
    ) -> builtins.list[RawRecord]:
        raise NotImplementedError
