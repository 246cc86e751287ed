"""Whether the lines of a card helped: how often each was shown, followed, and then worked; and which are withheld.

Counted of the lines that tell of a failure or of an answer that was worth nothing, from the calls of conversations that
began after the guidance was written, when the tool's guidance is written next. Nothing is noted at a showing.

* shown: a conversation that used the tool, and began while the line stood in the guidance. Hosts and sessions hand
  guidance out at the start; whether this line still fitted beside those of other tools is not known.
* followed: a call of it has the change that the line tells, where the form that failed would have been another; or
  comes next after this error and makes the change. The first such call counts.
* worked: that call worked. It failed where it did not, the reason does not lie with the service, the error names no
  other parameters alone, and no later call of the conversation worked with the change.

A line that failed WITHHELD_AFTER times and never worked is withheld: its claim has the kind `withheld`, and is in no
text. Where it tells another change later, it is another line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolmem.guidance.counted import values
from toolmem.guidance.counted.conditions import Observation, observe, text_kinds
from toolmem.guidance.counted.repair_history import error_of, same
from toolmem.guidance.counted.repairs import Repair, differences
from toolmem.guidance.counted.shown_values import form_of, output_of, text_of
from toolmem.guidance.outcomes import passing, place_in_conversation, went_wrong
from toolmem.guidance.parts import part_of
from toolmem.guidance.shown import BULLET, WITHHELD
from toolmem.models import Claim, Guidance, LineProof, RepairHistory, ToolCallResult
from toolmem.readers.error_messages import mask, telling_line

WITHHELD_AFTER = 2
MAX_PROOFS = 200  # of a tool
_PROVED = frozenset({"failure", "silent"})

Key = tuple[str, bool, str, str]


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation."""

    began: datetime  # its first call, of whichever tool
    calls: Sequence[ToolCallResult]  # of the tool, from the first


def is_withheld(proof: LineProof) -> bool:
    return proof.counts.get("failed", 0) >= WITHHELD_AFTER and not proof.counts["worked"]


def begins(old: Guidance | None) -> datetime | None:
    """Since when conversations may have been shown a line of `old`; None where nothing can be counted."""
    if old is None or old.created_at is None or old.history is None or not _standing(old):
        return None
    return old.created_at


def with_proof(old: Guidance, tool_name: str, talks: Iterable[Talk]) -> Guidance:
    """`old` with what `talks` show of its lines, kept in its history.

    A talk counts once: where its first call of the tool came before `old` was written, it was counted then. Linear in
    the calls. The same where nothing can be counted.
    """
    if (written := begins(old)) is None or old.history is None:
        return old
    proofs = {each.line: each.model_copy(update={"since": None}) for each in old.history.proofs}
    sinces = {each.line: each.since for each in old.history.proofs}
    lines: dict[Key, tuple[_Line, datetime]] = {}
    for claim in _standing(old):
        key = key_of(claim)
        since = sinces.get(key) or written
        proof = proofs.pop(key, None) or LineProof(line=key)
        proofs[key] = proof.model_copy(update={"since": since})
        lines[key] = _Line(claim), since
    for talk in talks:
        read = _read(tool_name, talk.calls)
        if read and min(call.call.create_time for call in read) > written:
            for key, (line, since) in lines.items():
                if talk.began > since:
                    proofs[key] = _counted(proofs[key], line, read)
    kept = sorted(proofs.values(), key=is_withheld)[-MAX_PROOFS:]
    return old.model_copy(update={"history": old.history.model_copy(update={"proofs": tuple(kept)})})


def parted(lines: Iterable[Claim], history: RepairHistory | None) -> tuple[list[Claim], list[Claim]]:
    """The lines that may be shown and those that are withheld, both with what was counted of them."""
    proofs = {each.line: each for each in history.proofs} if history is not None else {}
    shown: list[Claim] = []
    withheld: list[Claim] = []
    for line in lines:
        proof = proofs.get(key_of(line)) if proofs and line.kind in _PROVED else None
        if proof is None or not proof.counts:
            shown.append(line)
            continue
        line = line.model_copy(update={"counts": {**line.counts, **proof.counts}})
        if is_withheld(proof):
            withheld.append(line.model_copy(update={"kind": WITHHELD}))
        else:
            shown.append(line)
    return shown, withheld


def key_of(line: Claim) -> Key:
    """What makes it this line: the error, and the form of the change that it tells."""
    error = line.subject.error if line.subject is not None else ""
    return error, line.kind == "silent", str(line.detail.get("part", "")), _Line(line).change


def _standing(guidance: Guidance) -> list[Claim]:
    """The lines of the text that are counted."""
    text = set(guidance.text.splitlines())
    return [
        line
        for line in guidance.claims
        if line.kind in _PROVED and line.subject is not None and BULLET + line.text in text
    ]


@dataclass(frozen=True, slots=True)
class _ReadCall:
    call: ToolCallResult
    seen: Observation
    part: str
    worked: bool | None
    error: str  # as lines name it; "" of a call that worked
    answer: str  # the same of one that was answered


def _read(tool_name: str, calls: Sequence[ToolCallResult]) -> list[_ReadCall]:
    kinds = text_kinds(tool_name, [values.parameters(call.input) for call in calls])
    return [_call(call, observe(call, kinds)) for call in sorted(calls, key=place_in_conversation)]


def _call(call: ToolCallResult, seen: Observation) -> _ReadCall:
    wrong = went_wrong(call)
    error = error_of(telling_line(call.output), seen) if wrong else ""
    worked = None if wrong is None or passing(call) else not wrong
    return _ReadCall(
        call, seen, part_of(call.tool_name, call.input), worked, error, "" if wrong else mask(output_of(call))
    )


def _counted(proof: LineProof, line: _Line, calls: Sequence[_ReadCall]) -> LineProof:
    """`proof` with one conversation more."""
    calls = [each for each in calls if each.part == line.part]
    followed = [i for i in range(len(calls)) if line.is_followed(calls, i)]
    outcomes = [line.outcome(calls[i]) for i in followed]
    worked, failed = outcomes[:1] == [True], outcomes[:1] == [False] and True not in outcomes
    new = {"shown": True, "followed": bool(followed), "worked": worked, "failed": failed}
    return proof.model_copy(update={"counts": {name: proof.counts.get(name, 0) + one for name, one in new.items()}})


class _Line:
    """What a line tells, held against calls."""

    def __init__(self, claim: Claim) -> None:
        told: Mapping[str, Any] = claim.detail
        self.part = str(told.get("part", ""))
        self._silent = claim.kind == "silent"
        self._error = claim.subject.error if claim.subject is not None else ""
        self._sent, self._worked = _arguments(told.get("sent")), _arguments(told.get("worked"))
        repairs = claim.subject.repairs if claim.subject is not None else ()
        self._repairs = {same(Repair(*each)) for each in repairs}
        if told.get("repaired") and not told.get("size"):
            self._repairs.add(Repair("repeated", ""))
        self._repairs |= {Repair("changed", str(name)) for name in told.get("others", ())}
        self._repairs |= {Repair("dropped", str(name)) for name in told.get("left_out", ())}
        paths = {*self._sent, *self._worked, *(one.path for one in self._repairs)}
        self._paths = {path.partition(".")[0] for path in paths}

    @property
    def change(self) -> str:
        """In words that stay as they are where the next value of the same form is shown."""
        forms = [f"{path}={self._wanted(path)}" for path in sorted(self._worked)]
        return "; ".join(forms or sorted(f"{one.kind} {one.path} {one.after}".rstrip() for one in self._repairs))[:400]

    def outcome(self, call: _ReadCall) -> bool | None:
        """Whether it worked; None where that is not known, or the failure says nothing of the line."""
        if self._silent and call.worked:
            return None if call.call.score is None else call.call.score > 0.0
        message = call.call.output[: values.MAX_TEXT]
        if call.worked is False and call.error != self._error:
            named = {str(name) for name in call.seen.params if values.is_written_in(message, str(name))}
            return None if named and named.isdisjoint(self._paths) else False
        return call.worked

    def is_followed(self, calls: Sequence[_ReadCall], i: int) -> bool:
        call = calls[i]
        if self._worked and not call.seen.texts.keys() & self._worked.keys():
            return all(self._is_wanted(path, values.at(call.seen.params, path)) for path in self._worked)
        before = calls[i - 1] if i else None
        if before is None or (before.answer if self._silent else before.error) != self._error:
            return False
        made = {same(repair) for repair in differences(before.seen, call.seen)}
        return not made.isdisjoint(self._repairs)

    def _wanted(self, path: str) -> str:
        """How the value has to be written: its form, or the value itself where the one that failed has the same."""
        form = _form(self._worked[path])
        alike = path in self._sent and _form(self._sent[path]) == form
        return f"'{text_of(self._worked[path])}" if alike else form

    def _is_wanted(self, path: str, value: Any) -> bool:
        wanted = self._wanted(path)
        return (f"'{text_of(value)}" if wanted[:1] == "'" else _form(value)) == wanted


def _arguments(shown: object) -> dict[str, Any]:
    """What a line shows, read; nothing where it was cut."""
    try:
        read = json.loads(shown) if isinstance(shown, str) and shown else None
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {}


def _form(value: Any) -> str:
    """The type, and how a text or a number is written."""
    return f"{values.type_name(value)} {form_of(text_of(value)) if isinstance(value, str | int | float) else ''}"
