"""Keyed records and cached verdicts, as far as every backend agrees: what can be kept, versions, what is damaged."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolmem.errors import Conflict, RequestError
from toolmem.store.codec import CALL_FAULTS, dump_json, micros, moment, require_names, require_storable, require_unicode
from toolmem.stored import Document, RawRecord, Record

if TYPE_CHECKING:
    from toolmem.models import Verdict

logger = logging.getLogger("toolmem.store")


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


def readable(records: Iterable[RawRecord]) -> list[Record]:
    """Those that are not damaged; the others are logged."""
    found = []
    for raw in records:
        try:
            found.append(read_record(raw))
        except CALL_FAULTS:
            logger.error("record %r of %r is damaged and left out", raw.key, raw.namespace)
    return found


def check_verdicts(verdicts: Mapping[str, Verdict]) -> None:
    """Raises RequestError where one cannot be kept."""
    for key, verdict in verdicts.items():
        try:
            for text in (key, verdict.summary, verdict.evaluation, verdict.error_class):
                require_unicode(text)
        except ValueError as error:
            raise RequestError(f"verdicts[{key!r}]: {error}", field="verdicts") from error


def read_verdict(found: dict[str, Verdict], key: str, fields: Any) -> None:
    """Add the cached verdict of these fields. A damaged one is logged and left out: it is judged again."""
    from toolmem.models import Verdict

    try:
        found[key] = Verdict.model_validate(fields)
    except ValueError:
        logger.error("the cached verdict %r is damaged and left out", key)
