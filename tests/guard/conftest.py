import pytest

from toolmem.config.sections import GuardSection
from toolmem.guard import Guard
from toolmem.rules.store import RuleInput


@pytest.fixture
def guard(store, clock):
    return Guard(store, "default", clock, GuardSection(repeats="enforce"))


@pytest.fixture
def forbid(rules):
    def make(when, tool="@shell", text="Never do that", **fields):
        fields.setdefault("effect", "deny")
        when = when if isinstance(when, list) else [when]
        return rules.put_rule(RuleInput(tool_name=tool, rule=text, when=when, **fields))

    return make


@pytest.fixture
def runs(guard):
    """Runs a command where the guard lets it, and answers the decision."""

    def run(command, error=None, conversation_id="c", force=None, tool="Bash"):
        given = {"command": command} if isinstance(command, str) else command
        decision = guard.before(tool, given, conversation_id=conversation_id, force=force)
        if decision.action in ("allow", "advise"):
            guard.after(decision, given, output=error or "fine", failed=bool(error))
        return decision

    return run
