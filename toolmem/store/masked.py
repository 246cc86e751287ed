"""A store in which no secret of a call is kept: what is written to it is masked before the backend sees it.

The marks are of a random key that the store itself keeps, under a workspace that no list shows; the first secret makes
it. Rules and notes are what somebody asked to be kept: they stay as they were said.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from toolmem.errors import Conflict, StoreError
from toolmem.late_dataclasses import replace
from toolmem.readers.weight import aside
from toolmem.stored import OF_THE_STORE, Appended, BesideCalls, Document, LoggedDecision

if TYPE_CHECKING:
    from toolmem.models import Claim, Guidance, ToolCallResult, ToolMemory, ToolRecord, Verdict
    from toolmem.protocols import MemoryStore
    from toolmem.readers.masking import SecretMask

T = TypeVar("T")

NAMESPACE, KEY = "secrets", "key"
_WAITING = 256  # calls without a verdict whose secrets are known until they are judged
_LONGEST_WAITING = 20_000  # characters of such a call's output

MaskedCall: TypeAlias = "tuple[ToolCallResult, SecretMask]"


class _NoKey(Exception):
    """A secret was found, and the store's key is not read yet."""


class MaskedStore:
    """All methods of the store beneath; those that write calls, guidance and decisions mask them first."""

    def __init__(self, store: MemoryStore) -> None:
        self.unmasked = store
        self._key: bytes | None = None
        self.waiting: OrderedDict[tuple[str, str, str], ToolCallResult] = OrderedDict()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unmasked, name)

    # -- what is written

    async def append_calls(self, workspace: str, tool: str, calls: Sequence[ToolCallResult], keep: int) -> Appended:
        given = list(calls)
        hidden = [call for call, _ in await masked_calls(self, given)]
        appended = await self.unmasked.append_calls(workspace, tool, hidden, keep)
        self._keep_until_judged(workspace, given, hidden)
        return appended

    async def append_with(
        self, workspace: str, calls: Sequence[ToolCallResult], keep: int, beside: BesideCalls
    ) -> dict[str, Appended]:
        """Of a store that has it: see `commits_records`."""
        given = list(calls)
        hidden = [call for call, _ in await masked_calls(self, given)]
        store: Any = self.unmasked
        appended: dict[str, Appended] = await store.append_with(workspace, hidden, keep, beside)
        self._keep_until_judged(workspace, given, hidden)
        return appended

    async def update_verdicts(
        self, workspace: str, tool: str, verdicts: Mapping[int, ToolCallResult]
    ) -> ToolRecord | None:
        hidden = await self.with_key(
            [call.evaluation for call in verdicts.values()],
            lambda mask: {seq: _masked_judgement(call, mask) for seq, call in verdicts.items()},
        )
        for call in verdicts.values():
            self.waiting.pop((workspace, tool, call.id or ""), None)
        return await self.unmasked.update_verdicts(workspace, tool, hidden)

    async def put_guidance(
        self, workspace: str, tool: str, guidance: Guidance, *, document: Document, guidance_version: int
    ) -> ToolRecord:
        masked, shown = await self.with_key(
            guidance.text, lambda mask: (masked_guidance(guidance, mask), _masked_document(document, mask))
        )
        return await self.unmasked.put_guidance(
            workspace, tool, masked, document=shown, guidance_version=guidance_version
        )

    async def merge(
        self, workspace: str, memory: ToolMemory, keep: int, *, document: Document | None = None
    ) -> Appended:
        calls = [call for call, _ in await masked_calls(self, memory.tool_call_results)]
        update, shown = await self.with_key(
            [memory.content, memory.metadata],
            lambda mask: (
                {"content": mask.text(memory.content), "metadata": mask.value(memory.metadata)},
                document and _masked_document(document, mask),
            ),
        )
        masked = memory.model_copy(update={**update, "tool_call_results": calls})
        return await self.unmasked.merge(workspace, masked, keep, document=shown)

    async def log_decision(self, workspace: str, decision: LoggedDecision) -> None:
        given = (decision.input, decision.reason, decision.advice)
        masked = await self.with_key(given, lambda mask: _masked_decision(decision, mask))
        await self.unmasked.log_decision(workspace, masked)

    async def put_verdicts(self, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
        hidden = await self.with_key(
            [verdict.evaluation for verdict in verdicts.values()],
            lambda mask: {key: _masked_verdict(verdict, mask) for key, verdict in verdicts.items()},
        )
        await self.unmasked.put_verdicts(workspace, hidden)

    async def with_key(self, read: Any, work: Callable[[SecretMask], T]) -> T:
        """Do it, which goes through `read`; where it finds a secret and the key is unknown, get it and do it again."""
        from toolmem.readers.masking import SecretMask, marked_by

        def carried_out() -> T:
            return work(SecretMask(_without_key if self._key is None else marked_by(self._key)))

        for _ in range(2):
            try:
                return await aside(read, carried_out)
            except _NoKey:
                self._key = await store_key(self.unmasked)
        raise StoreError("the key of the store's secrets cannot be read")

    def _keep_until_judged(
        self, workspace: str, given: Sequence[ToolCallResult], hidden: Sequence[ToolCallResult]
    ) -> None:
        for call, masked in zip(given, hidden, strict=True):
            if masked is call or call.evaluation_status == "ok":
                continue
            if call.id is not None and len(call.output) <= _LONGEST_WAITING:
                self.waiting[workspace, call.tool_name, call.id] = call
                if len(self.waiting) > _WAITING:
                    self.waiting.popitem(last=False)


def _without_key(_: str) -> str:
    raise _NoKey


def _masked(call: ToolCallResult, mask: SecretMask) -> MaskedCall:
    """A call of wrong types is left to the store, which refuses it."""
    from toolmem.readers.masking import SecretMask, mask_call

    try:
        return mask_call(call, mask.mark)
    except (TypeError, AttributeError):
        return call, SecretMask(mask.mark)


def _masked_judgement(call: ToolCallResult, mask: SecretMask) -> ToolCallResult:
    summary, evaluation = mask.text(call.summary), mask.text(call.evaluation)
    if summary == call.summary and evaluation == call.evaluation:
        return call
    return call.model_copy(update={"summary": summary, "evaluation": evaluation})


def _masked_decision(decision: LoggedDecision, mask: SecretMask) -> LoggedDecision:
    try:
        given = json.loads(decision.input)
        hidden = mask.value(given)
        shown = decision.input if hidden is given else json.dumps(hidden, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):  # no JSON, or none that Python reads
        shown = mask.text(decision.input)
    reason, advice = (mask.again(mask.text(text)) for text in (decision.reason, decision.advice))
    return replace(decision, input=mask.again(shown), reason=reason, advice=advice) if mask.masked else decision


async def masked_verdict(store: MemoryStore, verdict: Verdict, mask: SecretMask) -> Verdict:
    """The verdict without secrets, those of its call, whose mask this is, among them."""
    return await _masked_by(store, mask, lambda: _masked_verdict(verdict, mask))


async def masked_text(store: MemoryStore, text: str, mask: SecretMask) -> str:
    """The text without secrets, those of the call whose mask this is among them."""
    return await _masked_by(store, mask, lambda: mask.again(mask.text(text)))


async def _masked_by(store: MemoryStore, mask: SecretMask, work: Callable[[], T]) -> T:
    try:
        return work()
    except _NoKey:  # the call has no secret, so the mask was made without the key
        from toolmem.readers.masking import marked_by

        mask.mark = marked_by(await store_key(unmasked(store)))
        return work()


def _masked_verdict(verdict: Verdict, mask: SecretMask) -> Verdict:
    texts = {name: mask.again(mask.text(getattr(verdict, name))) for name in ("summary", "evaluation")}
    same = all(getattr(verdict, name) == text for name, text in texts.items())
    return verdict if same else verdict.model_copy(update=texts)


def masked_guidance(guidance: Guidance, mask: SecretMask) -> Guidance:
    """The guidance without secrets."""
    claims = [_masked_claim(claim, mask) for claim in guidance.claims]
    update: dict[str, Any] = {"text": mask.text(guidance.text), "claims": claims}
    if guidance.history is not None:
        dumped = guidance.history.model_dump(mode="json", include={"recovered", "repairs", "failures", "proofs"})
        hidden = mask.value(dumped)
        if hidden is not dumped:
            from toolmem.models import RepairHistory

            update["history"] = RepairHistory.model_validate({**guidance.history.model_dump(mode="json"), **hidden})
    return guidance.model_copy(update=update) if mask.masked else guidance


def _masked_claim(claim: Claim, mask: SecretMask) -> Claim:
    from toolmem.models import CLAIM_DATA

    dumped = claim.model_dump(mode="json", include={"text", *CLAIM_DATA})
    hidden = mask.value(dumped)
    return claim if hidden is dumped else type(claim).model_validate({**claim.model_dump(mode="json"), **hidden})


def _masked_document(document: Document, mask: SecretMask) -> Document:
    text = mask.text(document.text)
    return document if text == document.text else Document(text, document.vector)


# ---------------------------------------------------------------- the key


async def store_key(store: MemoryStore) -> bytes:
    """The random key of a store, made by whoever needs it first. Raises StoreError."""
    record = await store.get(OF_THE_STORE, NAMESPACE, KEY)
    if record is None:
        try:
            import secrets

            fresh = {"key": secrets.token_hex(32)}
            record = await store.put(OF_THE_STORE, NAMESPACE, KEY, fresh, expected_version=0)
        except Conflict:
            record = await store.get(OF_THE_STORE, NAMESPACE, KEY)
    try:
        return bytes.fromhex(record.value["key"] if record is not None else "")
    except (KeyError, TypeError, ValueError):
        raise StoreError("the key of the store's secrets is damaged: delete its record") from None


async def take_over_key(source: MemoryStore, target: MemoryStore) -> None:
    """Marks of a copied store stay those of the same secrets, unless the target has a key of its own."""
    record = await source.get(OF_THE_STORE, NAMESPACE, KEY)
    if record is None or await target.get(OF_THE_STORE, NAMESPACE, KEY) is not None:
        return
    try:
        await target.put(OF_THE_STORE, NAMESPACE, KEY, record.value, expected_version=0)
    except Conflict:
        return


# ---------------------------------------------------------------- for those who hold some store


def masking(store: MemoryStore) -> MemoryStore:
    """The store with its secrets masked."""
    return store if isinstance(store, MaskedStore) else cast("MemoryStore", MaskedStore(store))


def unmasked(store: MemoryStore) -> MemoryStore:
    """The store beneath, which keeps what it is given."""
    return store.unmasked if isinstance(store, MaskedStore) else store


def commits_records(store: MemoryStore) -> bool:
    """Does it have `append_with`: calls and keyed records in one commit?"""
    return hasattr(unmasked(store), "append_with")


async def masked_calls(store: MemoryStore | MaskedStore, calls: Sequence[ToolCallResult]) -> list[MaskedCall]:
    """Each call as this store would keep it, and the mask that knows its secrets."""
    if not isinstance(store, MaskedStore):
        from toolmem.readers.masking import NoMask

        return [(call, NoMask()) for call in calls]
    texts = [(call.input, call.output, call.context, call.metadata) for call in calls]
    hidden: list[MaskedCall] = []

    def work(mask: SecretMask) -> list[MaskedCall]:  # what was read before the key was needed has no secret
        hidden.extend(_masked(call, mask) for call in calls[len(hidden) :])
        return hidden

    return await store.with_key(texts, work)


async def masked_output(store: MemoryStore, arguments: Any, output: str) -> str:
    """An output without the secrets in it and without those of the arguments."""

    def work(mask: SecretMask) -> str:
        mask.value(arguments)
        return mask.again(mask.text(output))

    return await store.with_key([arguments, output], work) if isinstance(store, MaskedStore) else output


async def masked_value(store: MemoryStore, value: Any) -> Any:
    """A JSON value as this store would keep it."""
    return await store.with_key(value, lambda mask: mask.value(value)) if isinstance(store, MaskedStore) else value


def as_given(store: MemoryStore, workspace: str, calls: Iterable[ToolCallResult]) -> list[ToolCallResult]:
    """Kept calls as they were given, where they wait for their verdict and this process still knows it."""
    waiting = store.waiting if isinstance(store, MaskedStore) else {}

    def given(call: ToolCallResult) -> ToolCallResult:
        held = waiting.get((workspace, call.tool_name, call.id or ""))
        if held is None:
            return call
        return call.model_copy(update=held.model_dump(include={"input", "output", "context", "metadata"}))

    return [given(call) for call in calls]


async def unmasked_secrets(store: MemoryStore, workspace: str) -> int:
    """Values in the kept calls of a workspace, and in the guidance, that would be masked today."""
    from toolmem.readers.masking import SecretMask, count_secrets

    found = 0
    for tool in await store.tool_names(workspace):
        for stored in await store.memories(workspace, [tool], calls=True):
            found += count_secrets(stored.calls)[0]
            guidance = stored.record.guidance
            if guidance is not None:
                mask = SecretMask(lambda _: "[masked:000000]")
                mask.text(guidance.text)
                found += mask.masked
    return found
