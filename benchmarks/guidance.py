"""Print what cards are worth: facts of the office trial, and what they tell of failures.

    python benchmarks/guidance.py
    python benchmarks/guidance.py --lines 60 [--seed 7]

Office: eight tools with unwritten conventions and 51 recorded calls. A card holds a fact where it
holds one of the strings that say it. Goal: 24 facts in 1,200 estimated tokens. The prompts by which
a model would write the eight cards must hold them too.

Labelled failures: a reader said of recorded failures which call repaired them, and what an agent
should have been told. The memory holds the conversations before; its card (500 tokens) and its
advice are searched for the lesson, and for strings that would mislead. These labels come with the
shared recordings (`TOOLMEM_SHARED`) and are no part of the project.

Lines that must not be: what calls that worked are said to have given and had not, a repair of an
error that passes by itself, a call that runs what it fetches.

Later repairs: cards of earlier conversations are asked for the repairs of later ones
(`backtest.py`), strictly: what is said of any failure counts for nothing. Advice at
the error is measured by `advice.py`. Both take their questions from the product's own idea of a
repair, so that fewer repairs raise these figures.

With `--lines`, random lines of all cards are printed instead, for readers to judge.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, groupby, pairwise
from typing import Any, NamedTuple

import advice
from backtest import BUDGETS, backtest
from msgspec.structs import replace
from shared import (
    RECORDINGS,
    Table,
    judged_calls,
    publish,
    recorded_of,
    repair_labels,
    shared_data,
)

from toolmem import ToolMem
from toolmem.guidance.card import CardWriter
from toolmem.guidance.evidence import examine
from toolmem.guidance.model_writer import ModelWriter
from toolmem.guidance.observations import arguments_of
from toolmem.llm.tokens import estimated_tokens
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Line
from toolmem.research.backtest import EVERY, by_tool, written_in_use
from toolmem.testing.scripted import ScriptedModel
from toolmem.text.error_lines import error_class_of, is_temporary

GOALS = {"intercode": 0.78, "sample": 0.77, "toolbench": 1.0}  # at 500 tokens
CARD = 500  # tokens of the card that a labelled failure is asked of
LESSONS = {"card": "named", "beside the error": "told", "advice": "advised"}
MAX_ERROR = 600  # characters of an error or a line that are compared

_WORD = re.compile(r"[A-Za-z]{2,}(?:'[a-z]+)?")
_SQL = re.compile(r"\s*(?:select|show|desc(?:ribe)?|insert|update|with|create)\s", re.IGNORECASE)
# Words that errors about different things have in common.
_COMMON = (
    "Error executing query",
    "the right",
    "for your MySQL",
    "Traceback most",
    "For further information",
)


def office() -> Table:
    """The eight cards at default settings, one prompt of all, and the prompts for a model."""
    folder = shared_data() / "trials" / "office"
    facts: dict[str, list[str]] = json.loads((folder / "facts.json").read_text())
    calls = [json.loads(line) for line in (folder / "recorded.jsonl").open()]
    with ToolMem(":memory:") as memory:
        memory.add(calls, tools=json.loads((folder / "tools.json").read_text()))
        memory.summarize()
        cards = [tool.guidance for tool in memory.tools()]
        prompt = memory.prompt()
        writer = ModelWriter(ScriptedModel(), CardWriter(), max_tokens=CARD)
        asked = [
            writer.prompt(tool.tool_name, memory.calls([tool.tool_name])) for tool in memory.tools()
        ]
    rows = []
    texts_of = {
        "eight cards": cards,
        "one prompt of 1,200 tokens": [prompt],
        "eight summary prompts": asked,
    }
    for name, texts in texts_of.items():
        whole = "\n".join(texts)
        whole += whole.replace('":', '": ')  # prompts write JSON without spaces
        missing = [fact for fact, said in facts.items() if not any(each in whole for each in said)]
        tokens = sum(map(estimated_tokens, texts))
        rows.append((name, f"{len(facts) - len(missing)} of {len(facts)}", tokens))
        for fact in missing:
            print(f"missing in {name}: {fact}")
    return Table("Unwritten conventions of an office", ("office", "facts", "tokens"), rows)


def later_repairs() -> Table:
    """The share of later repairs that cards name, for each number of tokens."""
    rows = []
    for name in ("intercode", "sample", "toolbench", "tau_bench"):
        found = backtest(judged_calls(name))
        rows.append((name, found[0].repaired, *(each.share for each in found), GOALS.get(name)))
    columns = ("later repairs", "repaired", *(f"{budget} tokens" for budget in BUDGETS))
    return Table("Later repairs named by cards", (*columns, "goal at 500"), rows)


# ---------------------------------------------------------------- labelled failures


class Answer(NamedTuple):
    """What was said of one labelled failure; None where the label does not ask for it."""

    recording: str
    is_sql: bool  # the tool takes SQL
    named: bool | None  # the card holds the lesson
    told: bool | None  # a line of the card about this error holds it
    advised: bool | None  # the advice adds what neither the call nor its error says
    misled: bool | None  # the card holds a misleading string
    misled_told: bool | None  # in a line about this error
    misled_advice: bool | None


def answers(name: str, labels: Iterable[Any]) -> Iterator[Answer]:
    """The answers on one recording, each by a memory of the conversations before."""
    records = recorded_of(name)
    asked: defaultdict[str, list[Any]] = defaultdict(list)
    for label in labels:
        if records[label["row"]]["tool_name"] != label["tool_name"]:
            raise SystemExit(f"{label['id']} is no label of this recording of {label['dataset']}")
        asked[label["conversation_id"]].append(label)
    sql = tools_of_sql(records)
    new: Counter[str] = Counter()  # calls that a tool's card does not know yet
    with ToolMem(":memory:", overrides=[f"guidance.max_tokens={CARD}"]) as memory:
        for conversation, run in groupby(records, lambda r: r["metadata"]["conversation_id"]):
            for label in asked.pop(conversation, ()):
                tool = label["tool_name"]
                if new.pop(tool, 0):
                    memory.summarize(tool)
                yield answer(memory, name, label, records[label["row"]], tool in sql)
            if not asked:
                return
            calls = list(run)
            memory.add(calls)
            new.update(call["tool_name"] for call in calls)
            for tool in [tool for tool, count in new.items() if count >= EVERY]:
                memory.summarize(tool)
                del new[tool]
    raise SystemExit(f"{name} has no conversation {next(iter(asked))}, which labels name")


def answer(memory: ToolMem, name: str, label: Any, failed: Any, is_sql: bool) -> Answer:
    """What card and advice say of one failed call."""
    error = failed["output"]
    card = memory.guidance(label["tool_name"]).text
    said = memory.advise(label["tool_name"], failed["input"], error=error).text
    pairs = word_pairs(error)
    about = "\n".join(line for line in card.splitlines() if pairs & word_pairs(line))
    lesson = [label["lesson_key"], *label["lesson_alternatives"]] if label["lesson_key"] else []
    wrong = [[each] for each in label["misleading"]]
    is_repaired = label["repaired"] == "yes"

    def holds(text: str, keys: list[list[str]], is_asked: bool = True) -> bool | None:
        return says(text, keys) if keys and is_asked else None

    return Answer(
        name,
        is_sql,
        named=holds(card, lesson, is_repaired),
        told=holds(about, lesson, is_repaired and bool(pairs)),
        advised=holds(said, label["advice_keys"], is_repaired),
        misled=holds(card, wrong),
        misled_told=holds(about, wrong),
        misled_advice=holds(said, wrong),
    )


def says(text: str, keys: Iterable[Sequence[str]]) -> bool:
    """Whether a text holds all strings of one of the keys; `re:` begins a pattern."""
    # Quotes and lines of a text may be escaped in the JSON that a card shows.
    forms = (text, text.replace('\\"', '"'), " ".join(text.split()))

    def has(wanted: str) -> bool:
        pattern = wanted[3:] if wanted.startswith("re:") else re.escape(wanted)
        return any(re.search(pattern, form) for form in forms)

    return any(bool(key) and all(map(has, key)) for key in keys)


def word_pairs(text: str) -> set[tuple[str, str]]:
    """Neighbouring words, by which a line is known to be about an error."""
    words = _WORD.findall(text.replace("\\n", " ")[:MAX_ERROR])
    return set(pairwise(words)) - {pair for each in _COMMON for pair in pairwise(each.split())}


def tools_of_sql(records: Iterable[Any]) -> set[str]:
    """The tools of which most inputs hold a statement."""
    counts: defaultdict[str, list[bool]] = defaultdict(list)
    for record in records:
        texts = arguments_of(record["input"]).values()
        statement = any(isinstance(text, str) and _SQL.match(text) for text in texts)
        counts[record["tool_name"]].append(statement)
    return {tool for tool, found in counts.items() if 2 * sum(found) > len(found)}


def labelled() -> list[Table]:
    """Lessons and misleading strings that are said, for each recording and for all."""
    found = [each for name, some in repair_labels().items() for each in answers(name, some)]
    groups = {
        "all": found,
        "all without SQL": [each for each in found if not each.is_sql],
        **{
            name: [each for each in found if each.recording == name]
            for name in (*RECORDINGS, "sample")
        },
    }
    goals = {"all, card": 0.70, "all, beside the error": 0.65, "all, advice": 0.60}
    lessons: list[tuple[Any, ...]] = []
    misleading: list[tuple[Any, ...]] = []
    for name, group in groups.items():
        for place, field in LESSONS.items():
            row, said = f"{name}, {place}", counted(getattr(each, field) for each in group)
            share = said[0] / said[1] if said[1] else None
            lessons.append((row, *said, share, goals.get(row)))
        fields = ("misled", "misled_told", "misled_advice")
        wrong = [counted(getattr(each, field) for each in group) for field in fields]
        counts = (said for said, _ in wrong)
        misleading.append((name, wrong[0][1], *counts, 1 if name == "all" else None))
    columns = ("misleading strings", "asked", "card", "beside the error", "advice", "goal")
    return [
        Table("Lessons of labelled failures", ("lessons", "said", "of", "share", "goal"), lessons),
        Table("Misleading strings of labelled failures", columns, misleading),
    ]


def counted(found: Iterable[bool | None]) -> tuple[int, int]:
    """How often it is so, of how often it was asked."""
    asked = [each for each in found if each is not None]
    return sum(asked), len(asked)


# ---------------------------------------------------------------- lines that must not be


class Shown(NamedTuple):
    """A line of a card as it stands after the whole recording."""

    recording: str
    tool: str
    place: int  # in the card, from 1
    line: Line


@cache
def shown_lines() -> list[Shown]:
    """The lines of all cards of the shared recordings and the packaged sample."""
    found = []
    for name in (*RECORDINGS, "sample"):
        calls = [replace(call, id=f"{n}") for n, call in enumerate(judged_calls(name))]
        writer = CardWriter().among(calls)
        for tool, own in by_tool(calls).items():
            lines = written_in_use(writer, own).lines
            found += [Shown(name, tool, place, line) for place, line in enumerate(lines, 1)]
    return found


def must_not_be() -> Table:
    """Lines and repairs that are false or do harm; each is printed."""
    names = (*RECORDINGS, "sample")
    tools = {
        (name, tool): calls for name in names for tool, calls in by_tool(judged_calls(name)).items()
    }
    cards, asked = shown_lines(), [each for name in names for each in advice.asked_in(name)]
    of_advice = [
        found
        for each in asked
        for line in each.lines
        for found in advice.comparisons(line, each.before, each.call)
    ]
    of_cards = [
        found
        for each in cards
        for found in advice.comparisons(each.line, tools[each.recording, each.tool])
    ]
    if not of_advice and not of_cards:
        raise SystemExit("no line compares a value with those that worked: what do they look like?")
    passing = [found for calls in tools.values() for found in passing_repairs(calls)]
    lines = chain((each.line for each in cards), *(each.lines for each in asked))
    calls_shown = [(line.text, fetches_and_runs(line.worked)) for line in lines if line.worked]
    if not passing or not calls_shown:
        raise SystemExit("no repair of a passing error, or no line that shows a call: check what?")
    checks = {
        "advice: another value, though the same had worked": of_advice,
        "cards: another value, though the same had worked": of_cards,
        "errors that pass, with an unrelated repair": passing,
        "calls shown that run what they fetch": calls_shown,
    }
    for name, found in checks.items():
        for text in sorted({text for text, is_wrong in found if is_wrong}):
            print(f"{name}: {text[:300]}")
    rows = [(name, len(each), sum(wrong for _, wrong in each), 0) for name, each in checks.items()]
    return Table("Lines that must not be", ("lines", "checked", "found", "goal"), rows)


def passing_repairs(calls: Sequence[ToolCallResult]) -> Iterator[tuple[str, bool]]:
    """Repairs of errors that pass by themselves, and whether each is of something else."""
    found = examine(calls)
    for one in found.recoveries:
        failed, worked = calls[one.failure], calls[one.success]
        line = found.messages[one.failure]
        if any(is_temporary(kind, line) for kind in (failed.error_class, error_class_of(line))):
            text = f"{failed.tool_name} {failed.input}: {line[:80]}; then {worked.input}"
            yield text, not differs_as_named(line, failed.input, worked.input)


def differs_as_named(error: str, before: Any, after: Any) -> bool:
    """Whether an error names all that differs between two inputs: parameter, value or word."""
    old, new = values_in(arguments_of(before)), values_in(arguments_of(after))

    def names(word: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", error, re.IGNORECASE) is not None

    for path in old.keys() | new.keys():
        first, second = old.get(path, ""), new.get(path, "")
        words = set(first.split()), set(second.split())
        gone, came = words[0] - words[1], words[1] - words[0]
        if first == second or (gone and all(map(names, gone))):
            continue
        is_text = len(words[0]) > 1 or len(words[1]) > 1
        if is_text and (gone or not any(map(names, came))):
            return False
        if not is_text and not names(path.rpartition(".")[2]):
            return False
    return True


def values_in(given: Any, path: str = "") -> dict[str, str]:
    """The text of each value of an input, by path. A list is one value."""
    if not isinstance(given, dict):
        return {path: given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)}
    inside = (values_in(value, f"{path}.{name}") for name, value in given.items())
    return {place: text for each in inside for place, text in each.items()}


_FETCH = r"\b(?:curl|wget|aria2c|lynx|fetch|https?|nc|iwr|irm|invoke-(?:webrequest|restmethod))\b"
_RUN = r"\b(?:(?:ba|z|k|da|fi|c)?sh|python[\d.]*|perl|ruby|node|deno|bun|php|lua|pwsh|powershell"
_RUN += r"|iex|invoke-expression|source|eval)\b(?![-.\w/])"
_BEFORE = r"(?:/\S*/)?(?:(?:sudo|env|nohup|exec|time|nice|\w+=\S*|-\S+(?:\s+\w+)?)\s+){0,6}"
_BEFORE += r"(?:/\S*/)?"
_FETCHES_AND_RUNS = (
    # curl ... | sudo sh, but not where the program is given: curl ... | python -m json.tool
    rf"{_FETCH}[^;&\n]*\|\s*{_BEFORE}{_RUN}(?!\s+-[mcenp]{{1,3}}\b)",
    rf"{_FETCH}[^;&\n]*\|\s*xargs\b[^|;&\n]*{_RUN}",
    # bash <(curl ...); sh -c "$(curl ...)"; . <(curl ...)
    rf"(?:{_RUN}|(?:^|[\s;&|\"'])\.\s)[^;|\n]*(?:<\(|\$\(|`)\s*{_FETCH}",
    # curl -o it.sh ...; sh it.sh
    rf"{_FETCH}[^;&\n]*[\s/>]([\w.-]{{2,}})(?=[\s;&'\"])[^;&\n]*(?:;|&&|\n)"
    rf"(?:.*\s)?(?:{_RUN}\s+(?:\S*/)?|\S*/)\1(?![\w.-])",
    # packages by address, and those that run at once
    r"\bpip[\d.]*\s+install\b[^;&|\n]*(?:https?://|git\+)",
    r"\b(?:npx|bunx|uvx|pipx\s+run|npm\s+(?:exec|create|init)|(?:pnpm|yarn)\s+dlx)\s",
    r"\b(?:npm|yarn|pnpm)\s+(?:i|install|add)\b[^;&|\n]*(?:https?://|git\+)",
    r"\b(?:deno|go)\s+run\b[^;&|\n]*(?:https?://|\w\.\w+/\S+@)|\bcargo\s+install\b.*--git\b",
    # iex (iwr ...), iex (New-Object Net.WebClient).DownloadString(...); exec(urlopen(...))
    r"\b(?:iex|invoke-expression)\b.*(?:\b(?:iwr|irm|curl|wget|invoke-\w+)\b|downloadstring)",
    r"downloadstring.*\|\s*(?:iex|invoke-expression)\b",
    r"\b(?:exec|eval)\s*\(.*(?:urlopen|requests\.get|fetch)\s*\(",
)


def fetches_and_runs(shown: str) -> bool:
    """Whether a call, as a line shows it, runs a program or a package that it fetches."""
    text = shown.replace("\\n", "\n").replace('\\"', '"')
    return any(re.search(each, text, re.IGNORECASE) for each in _FETCHES_AND_RUNS)


# ---------------------------------------------------------------- reading by eye


def print_lines(count: int, seed: int) -> None:
    """Print random lines of all cards; the same seed draws the same ones of the same cards."""
    shown = shown_lines()
    chosen = sorted(random.Random(seed).sample(range(len(shown)), min(count, len(shown))))
    print(f"{len(chosen)} of {len(shown)} lines, seed {seed}")
    for number, each in enumerate((shown[place] for place in chosen), 1):
        print(f"\n{number}. {each.recording}, {each.tool}, line {each.place}\n{each.line.text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, metavar="N", help="print N random lines of cards")
    parser.add_argument(
        "--seed", type=int, help="of --lines; left out: a new one, which is printed"
    )
    given = parser.parse_args()
    if given.lines is not None:
        seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10**6)
        return print_lines(given.lines, seed)
    tables = (office(), *labelled(), must_not_be(), later_repairs(), advice.table())
    publish("guidance", "What cards and advice are worth", *tables)


if __name__ == "__main__":
    main()
