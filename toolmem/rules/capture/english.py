"""English sentences: is this a demand on what the agent does, and for how long?

A cue ("don't", "never", "stop ...ing", "must not", "only", "ask me before") counts where the sentence is addressed to
the agent: as an imperative at the start of a clause, after "you must", or after "I want you". Elsewhere the same words
tell of something ("I never received it", "the build stopped working").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from toolmem.rules.capture.cues import TABLES, Cue, CueReading, Grammar, Kind
from toolmem.rules.capture.sentences import Sentence

EN = TABLES["en"]
ENGLISH = Grammar(EN)
FORM = ENGLISH.forms
ACTION_VERBS, IDLE_VERBS, NO_VERBS, BASE_VERBS, OF_TABLES, OF_PEOPLE = (
    frozenset(EN[f"{name}_verbs"]) for name in ("action", "idle", "none", "base", "of_tables", "of_people")
)
_ENDINGS = ("ing", "ed", "es", "s", "d")
_LONGEST_INTRODUCTION = 90  # characters


def read_english(sentence: Sentence) -> list[tuple[Cue, CueReading]]:
    """What each cue reads in an English sentence."""
    text = small(sentence.masked)
    cues = ENGLISH.cues_in(text)
    if not cues:
        return []
    if sentence.question:
        tag = FORM["tag_question"].search(text)
        if tag is not None and not FORM["question_start"].match(text):
            text = text[: tag.start()]
        elif not FORM["polite_question"].search(text):
            return []
    elif FORM["question_start"].match(text) and not FORM["polite_question"].search(text):
        return []
    if FORM["no_demand_at_the_end"].search(text[-80:]) or FORM["revoked"].search(text) or FORM["supposed"].match(text):
        return []
    return [(cue, reading) for cue in cues for reading in _readings(cue, text)]


def questions_it(sentence: Sentence) -> bool:
    """Tell what talks about the rule before it, and lays none down: "Is that wise?", "Do they keep to it?"."""
    return sentence.question and bool(FORM["talks_about_it"].match(small(sentence.masked)))


def small(text: str) -> str:
    """Small letters and straight apostrophes, at the same positions."""
    small = text.replace("’", "'").replace("‘", "'").replace("*", " ").replace("\n", " ")
    lowered = small.lower()
    return lowered if len(lowered) == len(small) else "".join(c.lower() if len(c.lower()) == 1 else c for c in small)


def _readings(cue: Cue, text: str) -> Iterator[CueReading]:
    for match in cue.pattern.finditer(text):
        start = match.start()
        if PLACES[cue.place](text, start) and not shown_after_colon(text, start):
            groups = match.groupdict()
            verb = groups.get("verb") or ""
            reading = _reading(cue, text, start, match.end("verb") if verb else match.end(), verb)
            if reading is not None:
                yield reading


def _reading(cue: Cue, text: str, start: int, after: int, verb: str) -> CueReading | None:
    rest = text[after:]
    if not _is_said_of(cue, verb, rest):
        return None
    asks, of_subject = "asks" in cue.needs, cue.place == "own_subject"
    end = _end_of_demand(text, after, verb, of_subject)
    condition = FORM["condition"].match(text[:start]) if cue.strength in ("now", "plain") else None
    if condition is not None and not _lasting_condition(text[condition.end() : start], text[start:end]):
        return None  # "if it rains, don't bother": about this one case
    clause = clause_start(text, start) if asks or cue.place in ("own_subject", "anywhere") else start
    clause = 0 if cue.place == "after_topic" else clause
    needs_tool = "tool" in cue.needs or (bool(verb) and not _acts(verb, rest))
    needs_tool = needs_tool and not (asks and _asks_of_acts(rest))
    by_itself = needs_tool and not asks and not (of_subject and FORM["points_back"].search(text[clause:end]))
    styled = FORM["of_style"].search(text[start:end]) is not None and not _stems(verb) & OF_TABLES
    kind = _kind(cue.strength, text, verb, start, after, end, text[clause:start] if of_subject else "")
    return CueReading(kind, clause, start, end, needs_tool or styled, by_itself, "tool_as_subject" in cue.needs)


def _is_said_of(cue: Cue, verb: str, rest: str) -> bool:
    """Is the verb one of which the cue is said?"""
    if "action_verb" in cue.needs and not _stems(verb) & ACTION_VERBS:
        return False
    if "base_verb" in cue.needs and not _is_base(verb):
        return False
    return "tool_as_subject" in cue.needs or not _is_idle(verb, rest)


def _kind(strength: str, text: str, verb: str, start: int, after: int, end: int, subject: str) -> Kind:
    rest = text[after:end].strip(" ,")
    passing = FORM["passing"].search(text)
    if passing is not None and passing.start() > end and passing[0].endswith((" then", " now")):
        passing = None  # "no calls after six, they have gone home by then": a reason
    parts = {
        "sentence": text,
        "before": text[:start],
        "subject": subject,
        "demand": text[start:end],
        "verb": verb,
        "rest": rest,
        "main": FORM["subordinate"].split(rest, maxsplit=1)[0],
        "passing": passing[0] if passing is not None else "",
    }
    return "session" if ENGLISH.decide("duration", parts, strength) == "session" else "standing"


def _lasting_condition(condition: str, demand: str) -> bool:
    """Tell "if a customer asks, ...", which may come up any day, from "if it rains, ...", which is about this one."""
    return bool(FORM["any_day"].match(condition.strip()) or FORM["lasting_demand"].search(demand))


def _end_of_demand(text: str, after: int, verb: str, of_subject: bool) -> int:
    reason = FORM["reason"].search(text, after)
    end = reason.start() if reason is not None else len(text)
    if verb.endswith("ing") or of_subject:
        for task in FORM["next_task"].finditer(text, after, end):
            if task[1] in ACTION_VERBS and (not of_subject or task[0].startswith(",")):
                return task.start()
    return end


# ---------------------------------------------------------------- verbs


@lru_cache(maxsize=4096)
def stems(word: str) -> frozenset[str]:
    """The word and what its base form may be."""
    found = {word, EN["irregular"].get(word, word)}
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            stem = word[: -len(ending)]
            found |= {stem, stem + "e"} if ending != "s" else {stem}
            if len(stem) > 2 and stem[-1] == stem[-2]:
                found.add(stem[:-1])
            if stem.endswith("i") and ending in ("es", "ed"):
                found.add(stem[:-1] + "y")
    return frozenset(found)


def _stems(verb: str) -> frozenset[str]:
    return stems(verb.split()[-1] if verb else verb)


def _acts(verb: str, rest: str) -> bool:
    """Is this verb about acting, whatever the object?"""
    base = _stems(verb)
    if FORM["manner_after"].match(rest) and not base & OF_PEOPLE:
        return False
    return bool(base & ACTION_VERBS) or "_" in verb or (verb == "tell" and bool(FORM["tells_somebody"].match(rest)))


def _is_base(verb: str) -> bool:
    """Could "don't <verb>" be said? Not "never in", "never received", "never has"."""
    if verb in NO_VERBS:
        return False
    if verb in ACTION_VERBS or verb in IDLE_VERBS or "_" in verb or "-" in verb:
        return True
    return verb in BASE_VERBS or verb.endswith(("eed", "ss")) or not verb.endswith(("ing", "ed", "s"))


def _asks_of_acts(rest: str) -> bool:
    """Tell whether "ask me before ..." goes on with something that an agent does: "you take any action"."""
    words = FORM["word"].findall(rest[:80])
    return any(_stems(word) & ACTION_VERBS for word in words[:8]) and not FORM["any_style"].search(rest)


def _is_idle(verb: str, rest: str) -> bool:
    """Tell what an agent does with no tool: "don't worry", "don't give up"."""
    decided = ENGLISH.decide("idle", {"verb": verb, "rest": rest})
    return decided == "idle" or (
        decided is None and bool(_stems(verb) & IDLE_VERBS and not _stems(verb) & ACTION_VERBS)
    )


# ---------------------------------------------------------------- places: is it said to the agent?


def _at_start(text: str, position: int) -> bool:
    """Does an imperative begin here: at the start of a clause, after fillers or an introduction?"""
    clause = FORM["polite_lead"].sub("", _clause(text, position))
    rest = _without_fillers(clause)
    if not rest:
        return True
    if FORM["person_before"].search(clause):
        return False
    if FORM["introduction"].match(rest) and len(rest) < _LONGEST_INTRODUCTION:
        return True
    joint = FORM["joint"].search(clause)
    if joint is None:
        return False
    # "He drinks and never eats" has one subject for both verbs; "save it and never open it" has none.
    alone = joint["word"] in ("but", "so") or "please" in joint[0]
    return alone or not FORM["subject"].match(_without_fillers(clause[: joint.start()]))


def _opens_sentence(text: str, position: int) -> bool:
    """As `start`; not where a statement goes before: "nothing came, no e-mail, no call"."""
    if not _at_start(text, position):
        return False
    before = [_without_fillers(part) for part in FORM["boundary"].split(text[:position])]
    told = any(FORM["tells"].search(part) for part in before[:-1])
    return not told or bool(FORM["so_far"].search(text[:position]) or FORM["asks_for_more"].search(text[position:]))


def _asked(text: str, position: int) -> bool:
    """As `start`, or after "I want you to", "you should", "if you'd"."""
    asked = bool(FORM["asked_to"].search(text[:position]))
    return _at_start(text, position) or (asked and not _is_told(text, position))


def _is_told(text: str, position: int) -> bool:
    """Tell somebody else's demand ("the manual says you must not ..."), and a subordinate clause."""
    clause = _clause(text, position)
    if FORM["own_saying"].search(clause):
        return False
    return bool(FORM["told"].search(clause) or FORM["report"].match(text[:position]) or FORM["by_law"].match(clause))


def _after_topic(text: str, position: int) -> bool:
    """Tell what stands behind a few words that open the sentence: "Payments: only on Mondays"."""
    lead = _without_fillers(text[:position])
    return bool(FORM["topic"].fullmatch(lead)) and not opens_before_colon(lead)


def _own_subject(text: str, position: int) -> bool:
    """Tell a subject ("invoices must never be paid") from a relative clause and from the object of a task."""
    clause = _clause(text, position)
    no_subject = FORM["not_own"].search(clause) or FORM["opens_task"].match(clause)
    return not (no_subject or FORM["report"].match(text[:position]))


PLACES: dict[str, Callable[[str, int], bool]] = {
    "start": _at_start,
    "sentence_start": _opens_sentence,
    "lasting_start": lambda text, start: _at_start(text, start) and bool(FORM["says_how_long"].search(text)),
    "asked": _asked,
    "not_told": lambda text, start: not _is_told(text, start),
    "own_subject": _own_subject,
    "after_topic": _after_topic,
    "anywhere": lambda text, start: True,
}


def clause_start(text: str, position: int) -> int:
    """Where the clause begins that `position` stands in."""
    return position - len(_clause(text, position))


def shown_after_colon(text: str, position: int) -> bool:
    """Is this behind a colon that opens a text to be written, or somebody else's words; or an example of such?"""
    if FORM["example"].search(text[:position]):
        return True
    return any(opens_before_colon(text[: colon.start()]) for colon in FORM["colon"].finditer(text[:position]))


def opens_before_colon(lead: str) -> bool:
    """Does what stands before a colon open a text that is only shown?"""
    if FORM["rule_for_others"].search(lead):
        return True
    shown = FORM["opens_shown"].search(lead) or FORM["opens_task"].match(lead)
    return bool(shown and not FORM["own_words"].search(lead))


def _clause(text: str, position: int) -> str:
    return FORM["boundary"].split(text[:position])[-1]


def _without_fillers(clause: str) -> str:
    while (match := FORM["filler"].match(clause)) is not None and match[0].strip():
        clause = clause[match.end() :]
    return clause.strip(" \"'*_")
