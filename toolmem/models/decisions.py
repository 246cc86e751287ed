"""What the guard decided about a call before it ran."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from toolmem.models.calls import Moment

Action = Literal["allow", "advise", "ask", "deny"]
SourceKind = Literal["rule", "repeat", "known_name", "schema", "self"]


class DecisionSource(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that speaks for or against a call: a rule, or `k` of `n` earlier calls."""

    kind: SourceKind
    rule_id: str = ""
    asks: bool = False  # the user may have taken the rule back: the call asks about it
    lifts: bool = False  # their consent to the call also lifts the rule
    unknown: str = ""  # not sure that the rule means the call: a digest of what is not known
    k: int = 0
    n: int = 0
    call_ids: tuple[str, ...] = ()


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a call may run, and why."""

    id: str
    time: Moment
    tool_name: str
    call: str = ""  # its arguments as JSON, masked, 500 characters; "" where nothing was found
    call_id: str = ""  # of the host
    conversation_id: str = ""
    action: Action
    may_run: bool = field(default_factory=bool)  # always sent; False for `ask` and `deny`
    reason: str = ""  # for the agent: what stands against the call, and what would be right
    notice: str = ""  # for the user alone: what they may type to let the call through
    advice: str = ""
    sources: tuple[DecisionSource, ...] = ()
    mode: Literal["shadow", "advise", "enforce"] = "enforce"
    outcome: str = ""  # what became of the call; "" until it is known
    is_wrong: bool = False  # the user found so; that changes nothing by itself

    @property
    def rule_ids(self) -> list[str]:
        """The rules that it is about, each once."""
        return list(dict.fromkeys(s.rule_id for s in self.sources if s.kind == "rule"))
