"""What is a demand, on which tools, and which calls it forbids."""

import pytest

from toolmem.models.tools import ToolSchema
from toolmem.rules.reader import UNSCOPED, demands

TOOLS = ["shell", "send_email", "delete_file", "write_file", "read_file", "web_search"]


def conditions_of(message: str, tool: str, tools: list[str] = TOOLS) -> dict | None:
    [demand] = demands(message, [], tools)
    found = demand.conditions.get(tool)
    return {"effect": demand.effect, "when": found.when, "unless": found.unless} if found else None


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("Fix the test.\nNever push to main.", "Never push to main"),
        (
            "Hi,\n\nnever email Sarah at sarah@example.com.",
            "never email Sarah at sarah@example.com",
        ),
        ("The build is red.\n\nDon't push to main.\n\nThanks", "Don't push to main"),
        ("永远不要给 sarah@example.com 的 Sarah 发邮件。", None),
        ("never write to /etc/nginx.conf, v2.3, 8 a.m., a@b.com.", None),
    ],
)
def test_a_demand_above_below_and_beside_a_task_is_kept_whole(message, sentence):
    [demand] = demands(message, [], TOOLS)
    assert demand.sentence == (sentence or message.rstrip(".。"))


@pytest.mark.parametrize(
    "message",
    [
        "Summarize this mail:\n\nHi team,\nnever push to main.",
        "> never push to main\nwhat does this mean?",
        "```\nnever push to main\n```",
        "Translate the text above.\nNever push to main.\nTranslate the text above.",
        'He said "never email me again".',
        "Never mind",
        "I never received the item",
        "Why don't you email Bob?",
        "Write a poem about a robot who must never open the last file.",
        "这个秤不准，称出来差了两斤",
    ],
)
def test_pasted_text_questions_idioms_and_reports_demand_nothing(message):
    assert demands(message, ["send_email"], TOOLS) == []


@pytest.mark.parametrize("option", ["-B", "-b"])
def test_a_short_option_keeps_the_letter_case_that_was_said(option):
    found = conditions_of(f"Never use git checkout {option}.", "shell")
    assert found["when"] == [
        {"command": r"^git\ checkout(\s|$)", "word": option},
    ]


@pytest.mark.parametrize(
    ("message", "unread"),
    [
        ("never email Sarah on weekends", ["weekends"]),
        ("On weekends, never email Sarah.", ["weekends"]),
        ("Never push to main on Fridays", ["Fridays"]),
        ("Never email anyone except Bob", ["except", "Bob"]),
        ("ask me about the budget before you email anyone", ["about", "budget"]),
        ("never force-push to main", []),
        ("Don't delete that file", []),
        ("Never send emails to users", []),
        ("Never send a newsletter", []),
    ],
)
def test_a_demand_that_is_not_wholly_understood_only_reminds(message, unread):
    [demand] = demands(message, [], TOOLS)
    assert (demand.effect, demand.conditions, demand.unread) == ("remind", {}, unread)


def test_never_edit_a_file_lets_it_be_read_and_deleted():
    [demand] = demands("Never edit .env files", [], TOOLS)
    assert sorted(demand.conditions) == ["shell", "write_file"]


def test_a_program_with_a_host_is_forbidden_together_with_it():
    found = conditions_of("never use curl on example.com", "shell")
    assert [sorted(test) for test in found["when"]] == [["command", "target"]]


def test_a_ban_with_sudo_is_on_sudo_alone():
    found = conditions_of("Don't run shell commands with sudo", "shell")
    assert found["when"] == [{"command": r"^sudo(\s|$)"}]


def test_what_needs_asking_is_asked():
    assert conditions_of("Never delete files without asking me", "delete_file")["effect"] == "ask"


def test_on_the_object_at_hand_a_demand_holds_for_the_session():
    assert [each.session for each in demands("do not cancel order W123", [], TOOLS)] == [True]
    assert [each.session for each in demands("Don't email customers", [], TOOLS)] == [False]


def test_tools_named_none_and_by_description():
    assert demands("Never email Sarah.")[0].tools == [UNSCOPED]
    assert demands("Never do that automatically.", ["calendar"], [])[0].tools == ["calendar"]
    fish = ToolSchema(name="x2", description="Feeds the goldfish in the pond")
    assert demands("Never feed the goldfish at night.", ["x1"], [fish])[0].tools == ["x2"]


def test_a_long_message_is_read_in_linear_steps():
    assert demands("never " * 50_000 + "push", [], TOOLS) == []
    assert demands(" " * 50_000 + "," * 50_000 + "never push to main", [], TOOLS) == []
