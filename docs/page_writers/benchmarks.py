"""The benchmark page, from the results that `make bench` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
IMAGES = ROOT / "docs" / "images"
SUBJECTS = {  # name of the results, and of the program that writes them
    "store": "The embedded store",
    "flows": "Whole flows",
    "recordings": "15,069 recorded calls",
    "start_up": "Start-up",
    "hooks": "What a hook of an agent costs",
    "files_entered": "Files that one call goes through",
    "rules": "Rules",
    "model_overhead": "Our side of a request to a model",
    "model_costs": "What judging costs in tokens",
    "summarization_cost": "What summaries cost, and what they buy",
    "corrected_rates": "Rates corrected by a few labels",
    "guidance_benefit": "What guidance buys",
    "guard": "What the guard would have said",
    "kept_to_the_end": "Instructions kept to the end",
    "withdrawals": "Which sentences take an instruction back",
    "compaction_canaries": "What survives compaction",
    "elasticsearch": "Elasticsearch",
    "http_load": "Serving over HTTP",
    "serving": "Serving",
    "mcp_calls": "Serving to an MCP host",
}

TOLD = {  # what stands before the figures
    "hooks": (
        "How much longer a process took than the bare interpreter (`python -P -c pass`), run in turn: first those "
        "that the installed hook of Claude Code starts, each with an event of its own (a call that ended is kept, to "
        "be judged later), then functions of the engine. 1,000 rules of 200 tools and 1,000 calls in the store; "
        "modules compiled."
    ),
}

# What the columns of a table mean, by the beginning of its title.
MEANINGS = {
    "Instructions kept": (
        "A user says an instruction in the first turn; after 0, 1 or 5 compactions, each of which leaves one "
        "sentence of summary and not a word of the instruction, the agent makes the call that it forbids, and one"
        " beside it that it does not forbid (*other calls*). *Text only* is a prompt and nothing else, and its "
        "agent is a script, not a model: it keeps to an instruction exactly if the words of it stand in what it "
        "is sent, the best that a text can do. *Buffer*: the compacted conversation; *with rules*: what "
        "`AgentSession.messages` sends. *Guard*: a script that never looks at a text and calls; its tool is "
        "decorated with `session.tool`, and a call counts as stopped where the function did not run. *After "
        "lifting*: the user took the instruction back in the turn before, or in the message that the call "
        "answers. *Next session*: a new session after the compactions of the first. The sentences are the "
        "project's own; those that are not understood stand in the second table and count nowhere in the first: "
        "the user is told that they lift nothing, and instructions that are not checked remind."
    ),
    "Canaries after one round": (
        "The canaries of compaction-conformance-kit (PyPI, MIT), which measures what an agent's compaction keeps. "
        "*lossy-truncation* and *naive-summary* are two of its compactors, alone and as the compressor of an "
        "AgentSession; what counts is whether the canary's words stand in what the model would be sent. A cell: the "
        "share that survived one round of compaction / five rounds, each of what the last one left. An AgentSession "
        "keeps what the user demands of the agent's tools; what demands nothing (facts, the state of the goal, how "
        "answers are written) is kept about as well as its compressor keeps it. The kit's own report: "
        "`PYTHONPATH=benchmarks compaction-kit check benchmarks/compaction_canaries.py:WithAgentSession`; it exits "
        "with 1, because it flags facts and preferences."
    ),
    "Later calls, and what": (
        "Guidance is written from the earlier conversations of a recording and asked about the later ones. *Repaired "
        "failures*: failed calls of the later part that one of the next three calls of the same tool put right. *Seen "
        "before*: of these, the share whose kind of repair followed that class of error in the earlier part; no text "
        "of any length can name more."
    ),
    "Repair coverage of later": (
        "The share of the repaired failures whose kind of repair a claim of the guidance names for that error. *Kept "
        "up* is the default writer, asked after every tenth call; *last window* read the newest 30 calls once, *all at "
        "once* all of them. *Counting only* lists errors and repairs by count, not joined; *pairs* lists every error "
        "with every repair by count and says nothing else."
    ),
    "Kept up against counting": (
        "The same failures under two texts. *Clusters*: tasks or conversations, by which the interval is drawn. "
        "*Only*: failures whose repair one text named and the other did not. *Undecided*: the interval reaches beyond "
        "a loss of 0.02."
    ),
    "Skill of the claims": (
        "The claims are read as a forecast of whether a later call fails. *Brier* is the mean squared error of that "
        "forecast (0 is best), *of the rate* that of the tool's past failure rate alone; the *skill score* is the "
        "share of that error which the claims take away, and below 0 they make it worse. *Warnings*: claims within "
        "the 500 tokens that call a value, a parameter or a repeat bad; *checked* are those that later calls could "
        "prove wrong."
    ),
    "Guidance without one kind": (
        "The default writer's guidance at the moment of each failure, then without one kind of sentence, whose tokens "
        "go to others. A difference is without minus with (failures won / lost): below 0 the kind buys "
        "something. *Strict*: no credit for sentences about any failure. *Per text*: sentences of the kind in a "
        "guidance, *tokens*: theirs. Until 0.2 there were also an example that worked (31 tokens per text), the form "
        "of answers (22), the commonest statement (13), and that no comparison told the calls apart (7): no "
        "figure fell without them, and they went. Errors took 83 tokens per text, 0.011 of the coverage at 500 tokens "
        "and 0.014 of the strict one from others; since then an error is told only where no repair names it."
    ),
    "Rates corrected by labels": (
        "The recorded flag serves as the label, the judge does not see it. *Verdicts turned*: the share of verdicts "
        "that were turned round, to see a worse judge. *Coverage*: the share of 1,000 random draws of labels whose "
        "interval held the share that truly worked, 0.95 is aimed at; *of that width*: the interval's mean width over "
        "that of the labels alone (Wilson)."
    ),
    "Judging the same": "What the judge would be asked about the same calls; it does not depend on the policy.",
    "Input tokens of summaries": (
        "The calls of one recording, dealt to so many tools in three patterns of arrival. A cell: input tokens over "
        "those of a single pass, and the number of summaries."
    ),
}
_POLICIES = (
    "*A single pass*: the line of each call, read once. *Calls read*: the share of the calls that any summary read. "
    "*Waiting at most*: calls that the guidance did not hold yet. *Repair coverage*: the share of later repairs whose "
    "kind the guidance in force named. The last column is the paired difference to smart skip with ten new calls, its "
    "95 % interval and the verdict at a margin of 0.02: where the interval reaches beyond it, the recording is too "
    "small to tell (undecided)."
)
_INSTRUCTIONS = """\
Which sentences of a user become rules, on which tools, and which must not. *Ours* is toolmem's capture; *upstream* is
ReMe's documented pattern, run on the same sentences. *Standing*: sentences that demand something for good; *precision*
and *recall* are of these. *Right tools*: of the standing demands that were found, those with exactly the right tools.
*Session*: demands for this conversation only; *session pinned* is the share of them kept for ever by mistake, *session
caught* the share taken as what they are.

The sets *own*, *own b* and *written* were written and labelled by three authors, one each. Their part *dev* was looked
at while the capture was built, the part *unseen* was not. The set *own c* is by an author who had not read the forms at
that time; first measured, before any of its errors were seen, precision was 1.0 in both languages and recall 0.73 in
English (26 standing demands) and 0.88 in Chinese (24). Its errors were then used: its rows
below measure nothing new. *Own d* is by the same author, in other forms again; nobody has looked at its errors.
"""
_RECORDED = """\
Messages of recorded users, mostly sentences that look like a demand and are none. *Captured*: taken for a demand, for
good or for the session; *true* and *false* say whether it was one.
"""
_BENCHMARKS = """\
Made by `make bench`; below each heading stands at which commit (`+`: with changes since), when, and on what. The
machines are shared, so seconds are noisy, and more so where it says busy; counts and bytes are exact. This page is
written from `benchmarks/results/*.json` by `python docs/generate.py`.

*The peer* is ReMe's tool memory (`reme-ai` 0.2.0.6 with `flowllm` 0.2.0.10), measured on a 2-core machine with a
scripted model on loopback. No figure here was made with a paid model. `intercode`, `tau_bench`, `toolbench` and the
other recordings beside `sample` are public ones that are not in this repository; `sample` is the project's own.
"""
_AGREEMENT = """\
The recorded `success` flag is withheld from the check and used as the label. The two one-line judges look at the output
alone: it begins with error, traceback or malformed; it holds one of nine words. Per recording, never pooled.
"""
_LIMITS = """\
The check was tuned on half of each recording. On outputs that are unlike these expect less: at first sight of three
lists written to mislead it, its sensitivity was 0.76, 0.75 and 0.91, its specificity 0.72, 0.83 and 0.83. Most of what
it still misses prints nothing at all; most false alarms are complaints of a program whose exit status a pipeline hides.
"""


def benchmarks() -> str:
    lines = ["# Benchmarks", "", _BENCHMARKS]
    for name, title in SUBJECTS.items():
        path = RESULTS / f"{name}.json"
        if not path.is_file():
            continue
        body = json.loads(path.read_text(encoding="utf-8"))
        lines += [f"## {title}", "", f"`python benchmarks/{name}.py`: {made(name)}", ""]
        lines += [TOLD[name], ""] if name in TOLD else []
        picture = next((IMAGES / f"{name}{ending}" for ending in (".svg", ".png") if _is_there(name, ending)), None)
        if picture is not None:
            lines += [f"![{title}](images/{picture.name})", ""]
        told: set[str] = set()
        for each in body.get("tables", []) if isinstance(body, dict) else []:
            lines += [f"**{each['title']}**", "", *_meaning(each, told), *_rows(each["columns"], each["rows"]), ""]
        figures = [_figure_row(figure) for figure in figures_of(body)]
        if figures:
            lines += ["| question | value | goal | met | the peer | basis |", "|---|---|---|---|---|---|", *figures, ""]
    lines += _agreement()
    lines += _instructions()
    return "\n".join(lines)


def made(name: str) -> str:
    """Of which commit, day and machine a result is."""
    stamp = json.loads((RESULTS / "made.json").read_text(encoding="utf-8"))[name]
    load = stamp.get("load", 0)
    busy = f", busy (load {load:g})" if load > stamp["cores"] else ""
    machine = f"{stamp['cores']} cores{busy}, Python {stamp['python']}, SQLite {stamp['sqlite']}, {stamp['system']}"
    return f"commit `{stamp['commit']}`, {stamp['date']}; {machine}"


def _is_there(name: str, ending: str) -> bool:
    return (IMAGES / f"{name}{ending}").is_file()


def _meaning(each: dict[str, Any], told: set[str]) -> list[str]:
    """What its columns mean, as a paragraph; none where the title says all, or where it was `told` before."""
    texts = [text for begin, text in MEANINGS.items() if each["title"].startswith(begin)]
    if "repair coverage (95 %)" in each["columns"]:
        texts.append(_POLICIES)
    fresh = [text for text in texts if text not in told]
    told.update(fresh)
    return [line for text in fresh for line in (text, "")]


def _rows(columns: list[str], rows: list[list[Any]]) -> list[str]:
    cells = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in [columns, *rows]]
    return [cells[0], "|" + "---|" * len(columns), *cells[1:]]


def _cell(value: Any) -> str:
    """A number with four digits that count; nothing where it is unknown."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value).replace("|", "/")


def figures_of(body: Any) -> list[dict[str, Any]]:
    """The answered questions of a results file, whichever of the forms it has; `met` is "yes", "NO" or ""."""
    found = body if isinstance(body, list) else [*body.get("figures", []), *body.get("goals", [])]
    words = {True: "yes", False: "NO"}
    return [
        {**figure, "met": words.get(figure.get("met"), figure.get("met") or "")}
        for figure in found
        if "question" in figure
    ]


def goal_of(figure: dict[str, Any]) -> str:
    goal, pairs = figure.get("goal"), figure.get("pairs")
    if goal is None:
        return ""
    bound = "at least" if figure.get("at_least") or pairs is not None else "at most"
    above = "" if pairs is None else f", and not below pairs ({pairs:.2f})"
    return f"{bound} {goal:g} {figure.get('unit', '')}".rstrip() + above


def _figure_row(figure: dict[str, Any]) -> str:
    unit = figure.get("unit", "")
    shown = goal_of(figure)
    cells = (
        f"{figure['value']:.4g} {unit}",
        shown,
        figure.get("met", ""),
        figure.get("peer", ""),
        figure.get("basis", ""),
    )
    return f"| {figure['question'].strip()} | " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |"


def _agreement() -> list[str]:
    path = RESULTS / "judge_agreement.json"
    if not path.is_file():
        return []
    body = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        "## How often the rule-based check agrees with recorded labels",
        "",
        f"`python benchmarks/judge_agreement.py`: {made('judge_agreement')}",
        "",
    ]
    lines.append(_AGREEMENT)
    lines += [
        "| recording | judge | calls | failures | misses | false alarms | balanced accuracy (95 %) |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in body:
        if row["part"] == "all":
            accuracy = f"{row['balanced_accuracy']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
            lines.append(
                f"| {row['dataset']} | {row['judge']} | {row['calls']} | {row['failures']} | {row['misses']} | "
                f"{row['false_alarms']} | {accuracy} |"
            )
    return [*lines, "", _LIMITS]


def _instructions() -> list[str]:
    path = RESULTS / "instructions.json"
    if not path.is_file():
        return []
    body = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        "## Standing demands told from other sentences",
        "",
        f"`python benchmarks/instructions.py`: {made('instructions')}",
        "",
        _INSTRUCTIONS,
    ]
    lines += [*_of_set([row for row in body if row["set"] != "user_sentences"]), ""]
    recorded = [row for row in body if row["set"] == "user_sentences"]
    return [*lines, _RECORDED, *_of_set(recorded), ""] if recorded else lines


def _of_set(rows: list[dict[str, Any]]) -> list[str]:
    cells = [[f"{v:.3f}" if isinstance(v, float) else v for v in row.values()] for row in rows]
    return _rows([name.replace("_", " ") for name in rows[0]], cells)
