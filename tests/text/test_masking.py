"""What is masked in a call or a text, and what stays as it is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolmem.models.calls import ToolCallResult
from toolmem.text.masking import MASK, Masker, has_mask, mask_call

KEY = b"a key of 32 bytes, as a store has"
SECRET = "hunter2!x"


def masked(value: Any) -> Any:
    return Masker(KEY).value(value)


def call(**fields: Any) -> ToolCallResult:
    return ToolCallResult(tool_name="login", create_time=datetime(2026, 3, 1, tzinfo=UTC), **fields)


# (text, what of it is masked). The tokens are made up, in the form that their services give them.
TEXTS = [
    ("backup-ghp_16C7e42F292c6912E7710c838347Ae178B4a", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("PROD_sk-live-4242abcd4242", "sk-live-4242abcd4242"),
    ("id=my-key-AKIAIOSFODNN7EXAMPLQ", "AKIAIOSFODNN7EXAMPLQ"),
    (json.dumps({"密码": "sunshine7"}), "sunshine7"),
    ('{"api_key": "sk-live-4242", "password": "hunter2!"}', "sk-live-4242"),
    ('{"api_key": "sk-live-4242", "password": "hunter2!"}', "hunter2!"),
    ("{'password': 'sunshine', 'user': 'bob'}", "sunshine"),
    ('{"body": "{\\"password\\": \\"sunshine\\"}"}', "sunshine"),
    ('{"a": "{\\"b\\": \\"{\\\\\\"clientSecret\\\\\\": \\\\\\"sunshine\\\\\\"}\\"}"}', "sunshine"),
    ('{"password": "cut-off-in-the-mid', "cut-off-in-the-mid"),
    ('{"pin": 1, "otp": 123456}', "123456"),
    ('[{"name": "API_KEY", "value": "sunshine"}]', "sunshine"),
    ("Authorization: Bearer abc123def", "abc123def"),
    ("curl -H 'Authorization: Bearer abcdefgh' https://a.example", "abcdefgh"),
    ('curl -H "X-Api-Key: sunshine" https://a.example', "sunshine"),
    ("authorization: Basic Ym9iOnN1bnNoaW5l", "Ym9iOnN1bnNoaW5l"),
    ("Cookie: session=abc; theme=dark", "session=abc; theme=dark"),
    ("export OPENAI_API_KEY=sunshine", "sunshine"),
    ("DB_PASSWORD=sunshine\nDB_USER=bob", "sunshine"),
    ("DB_HOST=a\\nDB_PASSWORD=sunshine\\nDB_USER=bob", "sunshine"),
    ("PGPASSWORD=sunshine psql -h db", "sunshine"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY"),
    ("curl -u bob:sunshine https://a.example", "sunshine"),
    ("mysql -u root -psunshine shop", "sunshine"),
    ("sshpass -p sunshine ssh host", "sunshine"),
    ("redis-cli -h db -a sunshine ping", "sunshine"),
    ("docker login -u bob -p sunshine", "sunshine"),
    ("tool --password sunshine --verbose", "sunshine"),
    ("tool --token='sunshine'", "sunshine"),
    ("tool --api-key=sunshine", "sunshine"),
    ("CREATE USER bob IDENTIFIED BY 'sunshine'", "sunshine"),
    ("postgres://app:sunshine@db:5432/shop", "sunshine"),
    ("redis://:sunshine@db/0", "sunshine"),
    ("https://bob:p@ss@a.example/v1", "p@ss"),
    ("https://a.example/v1?user=bob&api_key=sunshine", "sunshine"),
    ("https://maps.example/?key=AbCdEf1234567890AbCd", "AbCdEf1234567890AbCd"),
    ("jdbc:postgresql://db/shop?user=bob&password=secret&ssl=true", "=secret"),
    ('psql "host=db user=bob password=sunshine dbname=shop"', "sunshine"),
    ("[default]\npassword = sunshine\n", "sunshine"),
    ("Your OTP is 123456", "123456"),
    ("Server=db;Password=sunshine;Database=shop", "sunshine"),
    ("AccountName=a;AccountKey=Zm9vYmFyMTIzNDU2Nzg5MA==;", "Zm9vYmFyMTIzNDU2Nzg5MA=="),
    ("password: sunshine\nuser: bob", "sunshine"),
    ("<user>bob</user><password>sunshine</password>", "sunshine"),
    ("my password is hunter2!", "hunter2!"),
    ("我的密码是abc12345", "abc12345"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----", "MIIEow"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-DEF", "eyJzdWIiOiIxMjM0In0"),
    ("key AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8", "a1B2c3D4e5"),
    ("github_pat_" + "11ABCDEFG0abcdefghijkl", "11ABCDEFG0abcdefghijkl"),
    ("glpat-" + "abcDEF123456ghiJKL78", "abcDEF123456ghiJKL78"),
    ("xoxb-" + "123456789012-abcdefghijkl", "123456789012"),
    ("https://hooks.slack.com/services/" + "T00000000/B00000000/" + "aBcdef" * 4, "T00000000"),
    ("sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "4eC39HqLyjWDarjtT1zdp7dc"),
    ("sk-" + "0123456789abcdef" * 2, "0123456789abcdef"),
    ("sk-proj-" + "Abc123def456", "Abc123def456"),
    ("sk-ant-" + "api03-abcdefghijklm", "api03-abcdefghijklm"),
    ("AIza" + "SyA1234567890abcdefghijklmnopqrstuv", "SyA1234567890abcdefghijklmnopqrstuv"),
    ("hf_" + "abcdefghijABCDEFGHIJabcdefghij1234", "abcdefghijABCDEFGHIJabcdefghij1234"),
    ("it says\\n" + "ghp_" + "a1B2c3D4e5" * 3, "a1B2c3D4e5"),
]


@pytest.mark.parametrize(("text", "secret"), TEXTS)
def test_a_secret_in_a_text_is_masked(text, secret):
    shown = masked(text)
    assert secret not in shown
    assert has_mask(shown)


INPUTS = [
    {"password": "sunshine"},
    {"deep": [{"headers": {"Authorization": "Bearer sunshine"}}]},
    {"headers": {"X-API-Key": "sunshine", "Cookie": "session=sunshine"}},
    {"argv": ["tool", "--password", "sunshine"]},
    {"env": [{"name": "DB_PASSWORD", "value": "sunshine"}, {"name": "HOST", "value": "db"}]},
    {"body": json.dumps({"refresh_token": "sunshine"})},
    {"new_password": "sunshine", "password_confirmation": "sunshine"},
    {"passphrase": "sunshine over my garden"},
    {"secrets": ["sunshine"]},
    {"db_pass": "sunshine", "pw": "sunshine"},
    {"parts": ("a", {"apiKey": "sunshine"})},
    {"headers": [["X-Api-Key", "sunshine7"], ["Accept", "text/html"]]},
    {"headers": [("Authorization", "Bearer sunshine7")]},
    {"password": {"value": "sunshine"}},
    {"secret": {"SecretString": "sunshine"}},
    {"selector": "#password", "text": "sunshine7!"},
    {"element": "Password field", "ref": "e12", "text": "sunshine7!"},
    {"selector": "input[name=password]", "value": "sunshine7!"},
    {"fields": [{"name": "user", "value": "bob"}, {"label": "Password", "value": "sunshine7"}]},
    {"body": json.dumps({"密码": "sunshine7"})},
    {"body": json.dumps({"用户": "bob", "访问令牌": "sunshine7abcdef"})},
]


@pytest.mark.parametrize("value", INPUTS)
def test_a_secret_in_an_input_is_masked_by_the_name_of_its_key(value):
    shown = masked(value)
    assert "sunshine" not in json.dumps(shown)
    assert json.dumps(shown).count("[masked:") == str(value).count("sunshine")


def test_a_number_under_the_name_of_a_secret_is_masked():
    assert MASK.fullmatch(masked({"password": 123456})["password"])
    harmless = {"max_tokens": 4096, "token": 17, "secret": True}
    assert masked(harmless) == harmless


HARMLESS = [
    {"fields": ["password", "email"], "labels": [["password", "text"], ["token", "string"]]},
    {"labels": [["Password", "Required"]]},
    {"password": {"type": "string", "default": None, "description": "the user's password"}},
    {"selector": "#password", "text": "Forgot your password?"},
    {"element": "Password field", "ref": "e12"},
    {"name": "token", "text": "The token of the next page"},
    {"id": "task-sk-1", "slug": "disk-usage-of-hf_models", "name": "ask-npm_install-and-more"},
    {"id": "a8f5f167f44f4964e6c998dee827110c", "uuid": "550e8400-e29b-41d4-a716-446655440000"},
    {"commit": "da39a3ee5e6b4b0d3255bfef95601890afd80709", "cookies": "chocolate chip"},
    {"etag": 'W/"33a64df551425fcc55e4d42a148795d9f25f89d4"', "authority": "region12345"},
    {"max_tokens": 100, "page_token": None, "token_cost": 12, "total_tokens": 17, "token_count": 5},
    {"next_page_token": "CAUQAA12345678", "nextPageToken": "abc123def456ghi"},
    {"continuation_token": "a1b2c3d4e5f6", "has_password": False, "password_min_length": 8},
    {"password_reset_required": True, "secret_santa": "Bob", "secret": "***"},
    {"author": "Bob1234567890", "keyboard": "qwerty123", "monkey": "banana12345"},
    {"key": "abc123def4567", "primary_key": "user_id_123", "cache_key": "a1b2c3d4e5f6"},
    {"public_key": "abc123def456", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736"},
    {"session_id": "abc123def456", "conversation_id": "c1a2b3d4e5f6"},
    {"email": "bob@example.com", "url": "https://example.com/a/b?c=d&id=123456"},
    {"port": "http://host:8080/a@b", "ssh_key": "ssh-rsa AAAAB3NzaC1yc2E bob@host"},
    {"token_type": "bearer", "auth": "required", "authorization": "approved"},
    {"password": "${DB_PASSWORD}", "api_key": "YOUR_API_KEY", "token": "<your token>"},
    {"schema": {"password": {"type": "string", "minLength": 8}}},
    {"password": ["This field is required."], "api_key": "missing"},
    {"private_key": "/home/bob/.ssh/id_rsa", "pwd": "/tmp/work"},
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    '{"page_token": null, "max_tokens": 4096, "password_reset_required": true}',
    '{"sha256": "9f86d081884c7d659a2feaa0c5"}',
    "Invalid password: must be at least 8 characters",
    "Error: missing api_key: expected string",
    "The password is incorrect! The token is expired. The secret is out.",
    "password: str\ntoken: Token\nsecret: SecretStr\n",
    "def login(user, password=None, token=token, api_key=settings.api_key):",
    'password = getpass.getpass()\ntoken = response.json()["token"]\nkey = os.environ["API_KEY"]',
    "if password == other_password:",
    "usage: tool [--password PASSWORD] [--token TOKEN]  the --token option is required",
    "PWD=/home/bob OLDPWD=/tmp",
    "git clone ssh://git@github.com/a/b && pip install scikit-learn",
    "risk-assessment-2024-final-version task-2024-abcdefghijklmn",
    "KeyError: 'token'",
    "12 passed, 3 failed; pass: 12",
    "basic information2024 is bearer-friendly1",
    "SELECT token, secret FROM keys WHERE id = 'abc123def456'",
    'Scanner.ask("Enter vault password: "); String input = scanner.next(); call("done");',
    "https://example.com/p?key=shirts-and-shoes-2024-blue",
    "session_key=chat-2024-01-01-abc1, tokenizer: gpt2-xl-2019, passport: AB1234567",
    "docker run -p 8080:80 shop && mysql --port=3306 && curl http://a.example:8080",
    "密码不能为空",
]


@pytest.mark.parametrize("value", HARMLESS)
def test_what_is_no_secret_stays_as_it_is(value):
    assert masked(value) == value


def test_equal_secrets_get_one_mark_in_a_store_and_another_in_the_next():
    mark = masked({"password": "hunter2!"})["password"]
    assert MASK.fullmatch(mark)
    assert mark in masked('{"password": "hunter2!"}')
    assert mark != masked({"password": "hunter3!"})["password"]
    assert mark != Masker(b"the key of another store").value({"password": "hunter2!"})["password"]


def test_the_secret_of_a_call_is_masked_wherever_the_call_repeats_it():
    given = call(
        input={"user": "bob", "password": SECRET},
        output=f"login failed for bob:{SECRET}",
        context=f"log in with {SECRET}",
        evaluation=f"{SECRET!r} was refused",
        metadata={"note": {"api_key": "sunshine"}},
    )
    shown = mask_call(given, KEY)
    assert SECRET not in str(shown)
    assert "sunshine" not in str(shown)
    assert shown.input["user"] == "bob"
    assert given.input["password"] == SECRET


def test_a_secret_of_json_text_and_its_echo_in_the_output_are_masked():
    written = json.dumps({"file": ".env", "text": "DB_HOST=a\nDB_PASSWORD=Sunshine7\nDB_USER=bob"})
    shown = mask_call(call(input=written, output="cannot connect as bob with Sunshine7"), KEY)
    assert "Sunshine7" not in shown.input + shown.output
    assert "DB_USER=bob" in shown.input


def test_a_password_that_is_a_word_does_not_mask_the_same_word_elsewhere():
    shown = mask_call(call(input={"password": "customer"}, output="customer 7 is known"), KEY)
    assert shown.output == "customer 7 is known"


def test_a_call_without_secrets_is_returned_itself():
    given = call(input={"query": "rain", "limit": 3}, output='{"items": []}', metadata={"run": "a"})
    assert mask_call(given, KEY) is given


PIECES = st.sampled_from(
    ["password", "api_key", "token", "Authorization", "Cookie", "--password", "://u", "@h", "key"]
    + ["=", ": ", '"', "'", "\\", " ", "\n", "{", "}", "Bearer ", "hunter2!", "a1b2c3d4e5f6", "x"]
    + ["[masked:", "]", "<", ">", "[masked:0a1b2c]", " is ", "ghp_a1B2c3D4e5a1B2c3D4e5", "mysql -p"]
    + ["sunshine", "\u0130", "密码", "\ud800", "curl -u "]
)
TEXT = st.lists(PIECES, max_size=14).map("".join)


@settings(max_examples=150, deadline=None)
@given(TEXT)
@example("curl -u ghp_a1B2c3D4e5a1B2c3D4e5 --password x")
@example("curl -u [masked:0a1b2c]:hunter2!")
@example("password=curl -u key=a1b2c3d4e5f6ghp_a1B2c3D4e5a1B2c3D4e5 >")
def test_a_masked_text_is_not_masked_again_and_only_secrets_leave_it(text):
    once = masked(text)
    assert masked(once) == once
    place = 0
    for part in filter(None, MASK.split(once)):
        assert part in text[place:]
        place = text.index(part, place) + len(part)
