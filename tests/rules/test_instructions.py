"""What becomes an instruction, and what does not."""

from __future__ import annotations

import pytest

from toolmem.models import ToolSchema
from toolmem.rules.capture.instructions import MAX_SENTENCE, Instruction, find_instructions
from toolmem.rules.identity import UNSCOPED

CATALOGUE = [
    "send_email",
    "slack_post_message",
    "shell",
    "browser_open",
    "git_push",
    "git_force_push",
    "write_file",
    "calendar",
]


def standing(message: str, *ran: str, catalogue: list[str] | None = None) -> list[Instruction]:
    return find_instructions(message, ran=ran, catalogue=CATALOGUE if catalogue is None else catalogue).standing


def test_the_safety_case_is_kept_whole_in_english_and_chinese() -> None:
    for sentence in ("never email Sarah at sarah@example.com", "永远不要给 sarah@example.com 的 Sarah 发邮件"):
        assert standing(sentence, "send_email") == [Instruction(("send_email",), sentence)]
        assert standing(f"Thanks.\n{sentence}.", "shell") == [Instruction(("send_email",), sentence)]


def test_two_instructions_on_two_tools_are_two_rules() -> None:
    found = find_instructions(
        "Don't run shell commands with sudo. Stop using browser for that.", ran=["shell", "browser"], catalogue=[]
    )
    assert found.standing == [
        Instruction(("shell",), "Don't run shell commands with sudo"),
        Instruction(("browser",), "Stop using browser for that"),
    ]
    assert not found.session


def test_one_sentence_that_names_two_tools_holds_for_both() -> None:
    [instruction] = standing("Never send an email or a Slack message on my behalf.")
    assert set(instruction.tool_names) == {"send_email", "slack_post_message"}


def test_an_instruction_that_names_no_tool_is_about_the_first_that_ran() -> None:
    assert standing("Never do that automatically.", "calendar", "shell")[0].tool_names == ("calendar",)


def test_the_tool_that_is_named_wins_over_the_first_that_ran() -> None:
    assert standing("Never email my boss.", "shell", "browser_open")[0].tool_names == ("send_email",)


def test_without_any_tool_an_instruction_is_unscoped() -> None:
    [instruction] = find_instructions("Never email Sarah at sarah@example.com.").standing
    assert instruction.tool_names == (UNSCOPED,)
    assert instruction.unscoped


@pytest.mark.parametrize(
    "message",
    [
        "I don't know what the weather is",
        "Why don't you email Bob?",
        "Do you never sleep?",
        "You never emailed Bob, please do",
        "Never mind",
        "Don't worry about it",
        "I never received the item",
        "Send Sarah an update when you can.",
        "it never worked",
        "he never eats spice",
        "if you do not find it, search the web",
        "Never use emojis.",
        "Don't answer in German, please.",
        "",
        "   \n\n ...",
        "?!",
        "不知道",
        "从来不",
        "别担心",
        "你为什么不发邮件？",
        "请不要用表情符号",
    ],
)
def test_this_is_not_an_instruction(message: str) -> None:
    found = find_instructions(message, ran=["send_email"], catalogue=CATALOGUE)
    assert not found.standing
    assert not found.session


@pytest.mark.parametrize(
    "message",
    [
        "don't send it yet",
        "do not cancel order W123",
        "Please don't email her today.",
        "先别发邮件",
        "这封邮件不要发",
        "订单 W123 不要取消",
    ],
)
def test_a_demand_on_this_one_task_holds_for_the_session_only(message: str) -> None:
    found = find_instructions(message, ran=["send_email"], catalogue=CATALOGUE)
    assert not found.standing
    assert [instruction.rule for instruction in found.session] == [message.rstrip(".")]


@pytest.mark.parametrize(
    "message",
    [
        "Please don’t ever email customers",
        "You must not email customers.",
        "Under no circumstances email customers!",
        "I don't want you to e-mail anyone",
        "No longer email customers without asking",
        "Could you please stop emailing customers?",
        "Avoid emailing customers.",
        "Only email people inside the company.",
        "Always ask before you email a customer.",
        "Emails to customers must never be sent without my okay.",
        "绝不要给客户发邮件",
        "不要再给客户发邮件",
        "别给客户发邮件",
        "禁止给客户发邮件",
        "不准给客户发邮件",
        "不许给客户发邮件",
        "停止给客户发邮件",
        "只能给内部人员发邮件",
        "发邮件必须先问我",
    ],
)
def test_each_form_of_a_standing_instruction_is_read(message: str) -> None:
    assert [instruction.tool_names for instruction in standing(message, "shell")] == [("send_email",)]


def test_polite_refusal_of_being_transferred_is_read() -> None:
    [instruction] = find_instructions(
        "I'd rather not be transferred.", catalogue=["transfer_to_human_agents", "shell"]
    ).standing
    assert instruction.tool_names == ("transfer_to_human_agents",)


PASTED = [
    'He said "never email me again".',
    "The page says “do not use the shell”.",
    "> never email Sarah\n> do not use the shell\nwhat does this mean?",
    "```\nnever email Sarah\n```",
    "~~~\n# do not push to main\n",
    "Look at `never email Sarah`.",
    "What is this?\n-----Original Message-----\nNever email Sarah.\n\nDo not use the shell.",
    "fyi\n---------- Forwarded message ---------\nDo not use the shell.",
    "fyi\nFrom: Kim\nSubject: Rules\nNever email Sarah.",
    "On Mon, 3 Mar 2025, Kim wrote:\nNever email Sarah.",
    "2025-01-01 10:00:00 WARN never push to main",
    'My boss told me: "never email Sarah,\nand do not use the shell" and left.',
    "[WARN] do not run shell commands as root",
    "Post this in Slack: never push on Fridays.",
    "Translate into French: do not use the shell",
    "Translate this:\nNever email Sarah.\nDo not use the shell.",
    "他说“永远不要发邮件”。",
    "翻译成英文：不要发邮件",
    "在 Slack 里发：今晚不要用终端",
    "-----原始邮件-----\n不要发邮件",
]


@pytest.mark.parametrize("message", PASTED)
def test_pasted_text_makes_no_rule(message: str) -> None:
    found = find_instructions(message, ran=["send_email"], catalogue=CATALOGUE)
    assert not found.standing
    assert not found.session


def test_what_the_author_says_beside_pasted_text_counts() -> None:
    message = "> please write to me\nNever email that man.\n```\nstop\n```"
    assert [instruction.rule for instruction in standing(message, "send_email")] == ["Never email that man"]


def test_a_quoted_word_inside_an_instruction_still_names_its_tool() -> None:
    assert standing("Never use `git_force_push` here.", "shell")[0].tool_names == ("git_force_push",)
    assert standing('Never use "force push" on main.', "shell")[0].tool_names == ("git_force_push",)


def test_a_sentence_that_is_too_long_is_counted_and_never_cut() -> None:
    long = "never email " + "a very important person and " * 30 + "Bob"
    assert len(long) > MAX_SENTENCE
    found = find_instructions(f"{long}. Never use the shell.", catalogue=CATALOGUE)
    assert [instruction.rule for instruction in found.standing] == ["Never use the shell"]
    assert found.too_long == 1
    assert find_instructions("a" * 2000, catalogue=CATALOGUE).too_long == 0


def test_the_same_sentence_twice_is_one_instruction() -> None:
    assert len(standing("Never email Bob. Never email Bob.")) == 1


def test_tool_names_come_back_as_they_were_written() -> None:
    assert standing("never use send_email", "Send_Email", catalogue=[])[0].tool_names == ("Send_Email",)


def test_schemas_tell_by_their_description_where_the_name_does_not() -> None:
    tools = [
        ToolSchema(name="x1", description="Waters the plants in the greenhouse"),
        ToolSchema(name="x2", description="Feeds the goldfish in the pond"),
    ]
    [instruction] = find_instructions("Never feed the goldfish at night.", ran=["other"], catalogue=tools).standing
    assert instruction.tool_names == ("x2",)


def test_configured_nouns_add_to_the_table() -> None:
    message = "Never touch the carrier pigeons."
    assert standing(message, "shell")[0].tool_names == ("shell",)
    found = find_instructions(
        message, ran=["shell"], catalogue=CATALOGUE, nouns={"mail": ["pigeon"], "email": ["pigeon"]}
    )
    assert found.standing[0].tool_names == ("send_email",)
    assert standing("Never send e-mail.")[0].tool_names == ("send_email",)  # the built-in table is untouched


def test_tools_are_named_by_words_not_by_parts_of_words() -> None:
    [instruction] = find_instructions("Never do something else.", ran=["web"], catalogue=["ls"]).standing
    assert instruction.tool_names == ("web",)
