"""The offline judge: a rule-based check of one tool call.

It decides `execution_failed` from the recorded flag and from evidence in the output, and quotes that evidence. Its
score is 0.0 where the call failed, 0.0 where a question got an empty answer, and 1.0 for everything else. So 1.0
means "ran and answered; usefulness not judged", and never more.

* `success` False: failed, whatever the output says.
* `success` True or unknown: failed if the output gives a failure away. Where the flag says otherwise, the
  evaluation says that they disagree.
* An input that breaks the tool's schema is told in the evaluation. It lowers the score only together with an empty
  output, because a tool that answered has accepted the input, and one that did not leaves the breach as all there is.
* `metadata` is never read: recordings keep labels there.
"""

from __future__ import annotations

import re

from toolmem.judge import bodies, literals, messages, parameters, programs, structured
from toolmem.judge.expectation import Expectation, expectation
from toolmem.judge.failure_evidence import QUOTED, Evidence
from toolmem.judge.parameters import ParameterProblem
from toolmem.models import JudgeIdentity, ToolCallResult, ToolSchema, Verdict
from toolmem.protocols import Purpose
from toolmem.readers.error_classes import error_class_of

# Raise it with every change of what the judge says, its tables of words among it: stores make their verdicts anew only
# under another number. tests/snapshots/golden_verdicts.py holds the judge to this.
RULE_BASED_JUDGE = 1

MODEL = "rule_based_check"
_ROWS = re.compile(r"\s*\[\s*[(\['\"\d-]")  # a list of tuples, lists, strings or numbers
_ASKS_A_SERVICE = re.compile(r"\b(?:curl|wget|https?|gh|aws|az|gcloud|kubectl|docker|echo|printf)\b")
_MESSAGE = Expectation("unknown", asks=False, changes=False)
_SPACE = re.compile(r"\s+")
_NOT_JUDGED = "usefulness not judged"
_IDENTITY = JudgeIdentity(backend="offline", model=MODEL, prompt_version=str(RULE_BASED_JUDGE))


class RuleBasedCheck:
    """Implements `toolmem.protocols.Judge` without a model; deterministic, and free of charge."""

    paid = False

    @property
    def identity(self) -> JudgeIdentity:
        return _IDENTITY

    async def judge(self, call: ToolCallResult, schema: ToolSchema | None, purpose: Purpose) -> Verdict:
        """`check` for the port; never raises, `purpose` is not needed because nothing is spent."""
        return self.check(call, schema)

    def check(self, call: ToolCallResult, schema: ToolSchema | None = None) -> Verdict:
        """The verdict of one call. Never raises, whatever the call holds."""
        expected = expectation(call.tool_name, call.input)
        evidence = find_evidence(call.output, expected)
        problems = parameters.check(call.input, schema) if schema is not None else []
        failed = call.success is False or evidence is not None
        empty = not failed and _is_empty(call.output)
        unanswered = empty and (expected.asks or not (expected.changes or not call.output.strip()))
        breach = empty and bool(problems)
        said = _flag_and_evidence(call, evidence)
        if not failed:
            said.append(_answer(call.output, empty, unanswered))
        said.extend(_parameters(problems, schema, decisive=breach and not unanswered))
        return Verdict(
            summary=_clean(_summary(call, evidence, failed, empty)),
            evaluation=_clean(" ".join(said)),
            score=0.0 if failed or unanswered or breach else 1.0,
            execution_failed=failed,
            error_class=_class(call, evidence, problems) if failed else "",
            judge=self.identity,
        )


def find_evidence(output: str, expected: Expectation) -> Evidence | None:
    """What in `output` gives a failure away, or None."""
    if not output or output.isspace():
        return None

    def check_text(text: str, is_message: bool) -> Evidence | None:
        reading = literals.read(text)
        if reading.found and not isinstance(reading.value, str):
            if expected.echoes and not _ASKS_A_SERVICE.search(expected.command):
                return None  # the content of a file
            return structured.find(reading.value, check_text, expected.changes)
        if _ROWS.match(text):
            return None
        if is_message:
            return messages.check(text, _MESSAGE)
        return messages.check(text, expected) or programs.check(text, expected)

    reading = literals.read(output)
    if reading.found and isinstance(reading.value, str):  # a JSON string: one level of quotes around the answer
        found = check_text(reading.value, False)
        return found.inside(QUOTED) if found is not None else None
    return check_text(output, False)


def _is_empty(output: str) -> bool:
    if not output.strip():
        return True
    if messages.is_empty_text(output):
        return True
    if len(output) > 20_000:
        return False
    reading = literals.read(output)
    return reading.found and reading.complete and bodies.is_empty_answer(reading.value)


def _flag_and_evidence(call: ToolCallResult, evidence: Evidence | None) -> list[str]:
    if call.success is False:
        if evidence is None:
            return ["Failed by the recorded flag; the output shows no sign of it."]
        return [f"Failed by the recorded flag, and the output shows {evidence.quoted()}."]
    if evidence is None:
        return []
    told = f"Failed by its output: {evidence.quoted()}."
    if call.success:
        return [told, "The recorded flag says success; flag and output disagree."]
    return [told]


def _answer(output: str, empty: bool, unanswered: bool) -> str:
    if unanswered:
        return "Ran without a sign of failure, but the answer is empty."
    if empty:
        return f"Ran without a sign of failure and printed nothing, as is usual for an action; {_NOT_JUDGED}."
    return f"Ran and answered ({len(output)} characters, no sign of failure); {_NOT_JUDGED}."


def _parameters(problems: list[ParameterProblem], schema: ToolSchema | None, decisive: bool) -> list[str]:
    if schema is None or not schema.parameters:
        return []
    if not problems:
        return ["The input fits the tool's schema."]
    said = [f"The input does not fit the tool's schema: {'; '.join(problem.message for problem in problems)}."]
    if decisive:
        said.append("With an empty output nothing shows that the call was carried out.")
    return said


def _class(call: ToolCallResult, evidence: Evidence | None, problems: list[ParameterProblem]) -> str:
    if evidence is None:
        name = error_class_of(call.output) if call.output.strip() else "error"
    else:
        name = evidence.error_class or error_class_of(evidence.message)
    return problems[0].error_class if name == "error" and problems else name


def _summary(call: ToolCallResult, evidence: Evidence | None, failed: bool, empty: bool) -> str:
    """One sentence: what was called, and what came back."""
    given = call.input if isinstance(call.input, str) else literals.written(call.input)
    called = f"{_cut(call.tool_name, 60)}({_cut(given, 100)})"
    if evidence is not None:
        return f"{called} failed: {_cut(evidence.message, 140)}"
    if failed:
        return f"{called} failed and returned {'nothing' if not call.output.strip() else _cut(call.output, 100)}"
    if empty:
        return (
            f"{called} returned {'nothing' if not call.output.strip() else 'an empty answer: ' + _cut(call.output, 60)}"
        )
    return f"{called} returned {_cut(call.output, 100)}"


def _clean(text: str) -> str:
    """Decoded escapes may be halves of surrogate pairs, which no store can keep."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _cut(text: str, length: int) -> str:
    line = _SPACE.sub(" ", text[: 4 * length]).strip()
    return line if len(line) <= length and len(text) <= 4 * length else line[: length - 3].rstrip() + "..."


__all__ = ["RULE_BASED_JUDGE", "RuleBasedCheck", "find_evidence"]
