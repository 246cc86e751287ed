"""The guard's decision on a call before it runs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from toolmem.models.calls import Moment

Action = Literal["allow", "advise", "ask", "deny"]
SourceKind = Literal["rule", "repeat", "known_name", "schema", "self"]


class DecisionSource(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reason for a decision: a rule, or `k` of `n` earlier calls."""

    kind: SourceKind
    rule_id: str = ""
    asks: bool = False  # the user may have lifted the rule, so they are asked about it
    lifts: bool = False  # the user's consent to the call also lifts the rule
    unknown: str = ""  # a digest of what is not known of the call, if the rule may not mean it
    k: int = 0
    n: int = 0
    call_ids: tuple[str, ...] = ()


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a call may run, and why."""

    id: str
    time: Moment
    tool_name: str
    call: str = ""  # arguments as masked JSON, at most 500 characters; "" without sources
    call_id: str = ""  # given by the host
    conversation_id: str = ""
    action: Action
    may_run: bool = field(default_factory=bool)  # always sent; False for `ask` and `deny`
    reason: str = ""  # for the agent: why, and what would be right
    notice: str = ""  # for the user alone: what they can type to allow the call
    advice: str = ""
    sources: tuple[DecisionSource, ...] = ()
    mode: Literal["shadow", "advise", "enforce"] = "enforce"
    outcome: str = ""  # of the call: worked, failed or unknown; "" until it ended
    is_wrong: bool = False  # the user marked it as wrong, which changes no rule

    @property
    def rule_ids(self) -> list[str]:
        """The ids of the rules among its sources, each once."""
        return list(dict.fromkeys(s.rule_id for s in self.sources if s.kind == "rule"))
