"""A note takes the place of an earlier demand, and of what was read offline in the same message; everywhere or here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from toolmem import AgentSession, AsyncToolMem
from toolmem.engine import StoreFile, before, user_said
from toolmem.light_models import ToolMemoryRule
from toolmem.rules.evidence import UserEvidence
from toolmem.rules.lifted_demands import lift_demand
from toolmem.rules.noted_demands import DemandContext, NotedDemand, note_demand
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.words_after import Before, act_on, kept_of

FIRST = "never push to main by yourself"
WIDER = "never push to main or to release by yourself"
OTHER = "pushing to main is fine on Saturdays"
MAIN, RELEASE = {"command": "^git push.* main"}, {"command": "^git push.* release"}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def store_at(path: Path, *, held: bool = False) -> RuleStore:
    path.parent.mkdir(parents=True, exist_ok=True)
    store = StoreFile(path)
    store.held = held
    return RuleStore(store.protocol, clock=store.clock)


@pytest.fixture
def rules(tmp_path: Path) -> RuleStore:
    return store_at(tmp_path / "repo" / ".toolmem" / "memory.db")


@pytest.fixture
def held(tmp_path: Path) -> RuleStore:
    return store_at(tmp_path / "held" / ".toolmem" / "memory.db", held=True)


def note(quote: str, *when: dict[str, Any], **given: Any) -> dict[str, Any]:
    stops = [{"tool": "Bash", "arguments": {"command": "git push origin main"}}]
    passes = [{"tool": "Bash", "arguments": {"command": "git status"}}]
    basis = {"quote": quote, "effect": "deny", "lasting": "always", "tools": ["Bash"], "when": list(when)}
    return {**basis, "stops": stops, "passes": passes, **given}


async def noted(rules: RuleStore, given: dict[str, Any], turn: int = 1, **context: Any) -> NotedDemand:
    said = context.pop("said", given["quote"])
    return await note_demand(rules, given, DemandContext([said], ["Bash"], "s1", turn, **context))


async def in_force(rules: RuleStore) -> list[str]:
    return [rule.rule for rule in (await rules.all_rules())[0]]


async def with_status(rules: RuleStore, status: str) -> list[ToolMemoryRule]:
    return [rule for rule in (await rules.all_rules(inactive=True))[0] if rule.status == status]


# ---------------------------------------------------------------- what a note names


@pytest.mark.parametrize("named", ["never push to main", "its id"])
async def test_a_note_that_binds_more_takes_the_place_of_the_demand_it_names(held: RuleStore, named: str) -> None:
    first = await noted(held, note(FIRST, MAIN))
    named = first.rules[0].id[:8] if named == "its id" else named
    wider = await noted(held, note(WIDER, MAIN, RELEASE, replaces=named), 2)
    assert wider.outcome == "kept"
    assert f"It takes the place of “{FIRST}”" in wider.told
    assert await in_force(held) == [WIDER]
    (old,) = await with_status(held, "superseded")
    assert (old.rule, old.superseded_by) == (FIRST, wider.rules[0].id)


@pytest.mark.parametrize(
    "given",
    [
        {"when": [RELEASE], "stops": [{"tool": "Bash", "arguments": {"command": "git push origin release"}}]},
        {"unless": [{"command": "--dry-run"}]},
        {"effect": "ask"},
        {"lasting": "session"},
        {"until": "2099-01-01"},
    ],
    ids=["other calls", "lets more through", "asks", "this session", "ends"],
)
async def test_a_note_that_loosens_leaves_the_demand_it_names_and_proposes(
    held: RuleStore, rules: RuleStore, given: dict[str, Any]
) -> None:
    for store in (held, rules):
        await noted(store, note(FIRST, MAIN))
        loosened = await noted(store, {**note(OTHER, MAIN, replaces=FIRST), **given}, 2)
        assert loosened.outcome == "kept"
        assert f"“{FIRST}” holds on beside it" in loosened.told
        assert FIRST in await in_force(store)
    assert "say `lift " in (await noted(held, {**note(OTHER, MAIN, replaces=FIRST), **given}, 3)).told
    assert "`toolmem rules reject " in loosened.told


async def test_the_users_own_words_with_evidence_let_a_looser_note_take_the_place(held: RuleStore) -> None:
    await noted(held, note(FIRST, MAIN))
    said, quote = "you can push to main again. Ask me before a release", "Ask me before a release"
    typed = held.as_told_by(UserEvidence("typed", said, "s1", "claude-code"))
    stops = [{"tool": "Bash", "arguments": {"command": "git push origin release"}}]
    looser = await noted(typed, note(quote, RELEASE, replaces=FIRST, effect="ask", stops=stops), 2, said=said)
    assert looser.outcome == "kept"
    assert await in_force(held) == [quote]


async def test_a_demand_that_nothing_fits_is_named_as_such_and_the_note_is_not_kept(rules: RuleStore) -> None:
    refused = await noted(rules, note(WIDER, MAIN, RELEASE, replaces="the rule on e-mail to Sarah"))
    assert refused.outcome == "refused"
    assert refused.problems[0][0] == "replaces"
    assert await in_force(rules) == []


async def test_the_same_demand_noted_anew_with_more_is_one_rule(held: RuleStore) -> None:
    first = await noted(held, note(FIRST, MAIN))
    again = await noted(held, note(FIRST, MAIN, RELEASE, replaces=FIRST), 2)
    assert (again.outcome, [rule.id for rule in again.rules]) == ("kept", [rule.id for rule in first.rules])
    assert await in_force(held) == [FIRST]
    assert again.rules[0].when["when"] == [MAIN, RELEASE]  # type: ignore[index]


async def test_a_proposal_takes_the_place_of_nothing(held: RuleStore) -> None:
    await noted(held, note(FIRST, MAIN))
    unheard = DemandContext(None, ["Bash"], "s1", 2)
    waits = await note_demand(held, note(WIDER, MAIN, RELEASE, replaces=FIRST), unheard)
    assert waits.outcome == "proposed"
    assert await in_force(held) == [FIRST]


# ---------------------------------------------------------------- what was read offline in the same message


def heard(rules: RuleStore, said: str, turn: int) -> None:
    store = rules.store
    assert isinstance(store, StoreFile)
    user_said(store, said, tools=["Bash"], session_id="s1", turn=turn, by_class=True, evidence=None)


PUSH = "Never push to main."
SPARED = {"passes": [{"tool": "Bash", "arguments": {"command": "git push --dry-run origin main"}}]}


@pytest.mark.parametrize("quote", ["Never push to main", "never push to main.", "Never push to main. Thanks"])
async def test_a_note_takes_the_place_of_what_was_read_offline_in_the_message(held: RuleStore, quote: str) -> None:
    said = f"{PUSH} Thanks for looking at it."
    heard(held, said, 4)
    assert await in_force(held) == ["Never push to main"]
    narrower = {**note(quote, MAIN, unless=[{"command": "--dry-run"}]), **SPARED}
    kept = await noted(held, narrower, 4, said=said)
    assert kept.outcome == "kept"
    assert [(rule.rule, rule.said.turn) for rule in (await held.all_rules())[0] if rule.said] == [
        (kept.rules[0].rule, 4)
    ]
    assert kept.rules[0].when["unless"]  # type: ignore[index]


async def test_from_the_next_message_on_a_note_needs_evidence_to_narrow_it(held: RuleStore) -> None:
    heard(held, PUSH, 4)
    narrower = {**note("Never push to main", MAIN, unless=[{"command": "--dry-run"}]), **SPARED}
    late = await noted(held, narrower, 5, said=PUSH)
    assert late.outcome == "proposed"
    assert [rule.said.noted_by for rule in (await held.all_rules())[0] if rule.said] == [""]
    assert "unless" not in str((await held.all_rules())[0][0].when)


async def test_another_sentence_of_the_message_stays_as_it_was_read(held: RuleStore) -> None:
    said = f"{PUSH} Never email Sarah."
    store = held.store
    assert isinstance(store, StoreFile)
    user_said(store, said, tools=["Bash", "send_email"], session_id="s1", turn=4, by_class=True, evidence=None)
    assert "Never email Sarah" in await in_force(held)
    await noted(held, {**note(said, MAIN), **SPARED, "passes": note("", MAIN)["passes"]}, 4, said=said)
    assert "Never email Sarah" in await in_force(held)


ALL_OF_IT = [
    ("Don't touch anything under /srv/data, ever.", "Don't touch anything under /srv/data"),
    ("One thing: don't touch /srv/data", "don't touch /srv/data"),
    ("Please never delete anything in /srv/data, ok?", "never delete anything in /srv/data"),
    ("Never touch /srv/data.", "Never touch /srv/data"),
    ("请永远不要删除 /srv/data 里的文件哦。", "永远不要删除 /srv/data 里的文件"),
]
MORE_THAN_THAT = [
    ("Never delete /srv/data and don't read .env.", "Never delete /srv/data"),
    ("Never touch /srv/data or /srv/backup.", "Never touch /srv/data"),
]
TOOLS = ["Bash", "Read", "Write", "Edit"]


def offline(rules: RuleStore, said: str, turn: int = 4) -> None:
    store = rules.store
    assert isinstance(store, StoreFile)
    user_said(store, said, tools=TOOLS, session_id="s1", turn=turn, by_class=True, evidence=None)


def of_data(quote: str) -> dict[str, Any]:
    return {
        "quote": quote,
        "effect": "deny",
        "lasting": "always",
        "tools": ["Bash"],
        "when": [{"command": r"^rm\b.* /srv/data"}],
        "stops": [{"tool": "Bash", "arguments": {"command": "rm /srv/data/x"}}],
        "passes": [{"tool": "Bash", "arguments": {"command": "ls /srv/data"}}],
    }


@pytest.mark.parametrize(("said", "quote"), ALL_OF_IT)
async def test_a_note_takes_the_place_of_all_rules_of_its_sentence_under_whichever_tools(
    held: RuleStore, said: str, quote: str
) -> None:
    offline(held, said)
    assert len((await held.all_rules())[0]) > 1
    kept = await noted(held, of_data(quote), 4, said=said)
    assert kept.outcome == "kept"
    assert [(rule.tool_name, rule.rule) for rule in (await held.all_rules())[0]] == [("@shell", quote)]


@pytest.mark.parametrize(("said", "quote"), MORE_THAN_THAT)
async def test_what_the_sentence_demands_beyond_the_quote_holds_on(held: RuleStore, said: str, quote: str) -> None:
    offline(held, said)
    others = {(rule.tool_name, rule.rule) for rule in (await held.all_rules())[0] if rule.tool_name != "@shell"}
    assert others
    assert (await noted(held, of_data(quote), 4, said=said)).outcome == "kept"
    assert others <= {(rule.tool_name, rule.rule) for rule in (await held.all_rules())[0]}


async def test_a_reminder_takes_the_place_of_no_rule_that_is_checked(held: RuleStore) -> None:
    heard(held, PUSH, 4)
    said = {"quote": "Never push to main", "effect": "remind", "lasting": "always", "tools": ["Bash"]}
    await noted(held, said, 4, said=PUSH)
    store = held.store
    assert isinstance(store, StoreFile)
    assert before(store, {"tool_name": "Bash", "input": {"command": "git push origin main"}}).stops


async def test_a_session_keeps_what_its_model_noted_and_not_the_sentence_once_more() -> None:
    async with AsyncToolMem(":memory:") as memory:
        session = await AgentSession.start(memory, tools=["Bash"])
        session.messages(PUSH)
        await session.call_tool("note_demand", {**note("Never push to main", MAIN), "unless": [{"command": "--dry"}]})
        await session.after_turn([{"role": "user", "content": PUSH}, {"role": "assistant", "content": "ok"}])
        (kept,) = [rule for tool in ("Bash", "@shell") for rule in await memory.rules.list(tool)]
        assert kept.said is not None
        assert kept.said.noted_by
        await session.close()


# ---------------------------------------------------------------- undone


async def undo(rules: RuleStore, turn: int) -> None:
    typed = rules.as_told_by(UserEvidence("typed", "undo", "s1", "claude-code"))
    spoken = Before("s1", turn, datetime.now(UTC) - timedelta(hours=1))
    await act_on("undo", typed, await kept_of(typed, spoken), spoken, chinese=False)


async def test_a_note_that_is_undone_gives_its_place_back_to_the_demand_it_named(held: RuleStore) -> None:
    await noted(held, note(FIRST, MAIN))
    await noted(held, note(WIDER, MAIN, RELEASE, replaces=FIRST), 2)
    await undo(held, 2)
    assert await in_force(held) == [FIRST]


async def test_a_note_that_is_undone_leaves_nothing_of_its_message(held: RuleStore) -> None:
    said = f"{PUSH} Thanks for looking at it."
    heard(held, said, 4)
    kept = await noted(held, note("Never push to main. Thanks", MAIN), 4, said=said)
    assert kept.outcome == "kept"
    await undo(held, 4)
    assert await in_force(held) == []


# ---------------------------------------------------------------- everywhere


@pytest.fixture
def own(tmp_path: Path) -> RuleStore:
    return store_at(tmp_path / "home" / ".toolmem" / "memory.db")


async def test_what_holds_everywhere_is_kept_in_the_users_own_store(rules: RuleStore, own: RuleStore) -> None:
    kept = await noted(rules, note(FIRST, MAIN, where="everywhere"), everywhere=own)
    assert (kept.outcome, kept.why) == ("kept", "")
    assert await in_force(rules) == []
    assert await in_force(own) == [FIRST]


async def test_without_a_store_of_the_user_it_holds_here_and_that_is_said(rules: RuleStore) -> None:
    kept = await noted(rules, note(FIRST, MAIN, where="everywhere"))
    assert kept.outcome == "kept"
    assert "It holds here alone, not everywhere" in kept.told
    assert "not everywhere" in kept.why
    assert await in_force(rules) == [FIRST]


async def test_a_demand_of_this_session_is_no_rule_everywhere(rules: RuleStore, own: RuleStore) -> None:
    kept = await noted(rules, note(FIRST, MAIN, where="everywhere", lasting="session"), everywhere=own)
    assert kept.outcome == "kept"
    assert await in_force(own) == []


async def test_what_holds_here_alone_takes_the_place_of_nothing_everywhere(rules: RuleStore, own: RuleStore) -> None:
    await noted(rules, note(FIRST, MAIN, where="everywhere"), everywhere=own)
    here = await noted(rules, note(WIDER, MAIN, RELEASE, replaces=FIRST), 2, everywhere=own)
    assert f"“{FIRST}” holds on beside it" in here.told
    assert await in_force(own) == [FIRST]
    both = await noted(
        rules, note(f"{WIDER} anywhere", MAIN, RELEASE, replaces=WIDER, where="everywhere"), 3, everywhere=own
    )
    assert f"It takes the place of “{WIDER}”" in both.told
    assert await in_force(rules) == []


async def test_what_holds_everywhere_is_taken_back_from_any_project(rules: RuleStore, own: RuleStore) -> None:
    await noted(rules, note(FIRST, MAIN, where="everywhere"), everywhere=own)
    sure = "you can push to main again"
    context = DemandContext([sure], ["Bash"], "s1", 2, everywhere=own)
    assert (await lift_demand(rules, sure, FIRST, context)).outcome == "kept"
    assert await in_force(own) == []
