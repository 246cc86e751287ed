"""English sentences: is this a demand on what the agent does, and for how long?

A cue ("don't", "never", "stop ...ing", "must not", "only", "ask me before") counts where the sentence is addressed to
the agent: as an imperative at the start of a clause, after "you must", or after "I want you". Elsewhere the same words
tell of something ("I never received it", "the build stopped working").
"""

from __future__ import annotations

import re

from toolmem.rules.capture.english_bounds import BOUNDS
from toolmem.rules.capture.english_cue import Cue
from toolmem.rules.capture.english_duration import Strength, kind_of
from toolmem.rules.capture.english_hints import HINTS
from toolmem.rules.capture.english_places import after_topic, anywhere, clause_start, own_subject, shown_after_colon
from toolmem.rules.capture.english_prohibitions import PROHIBITIONS
from toolmem.rules.capture.english_wishes import WISHES
from toolmem.rules.capture.english_words import (
    ACTION_VERBS,
    IDLE_VERBS,
    IRREGULAR,
    MANNER_AFTER,
    NOT_VERBS,
    STYLE,
    alternatives,
)
from toolmem.rules.capture.reading import Reading, combined
from toolmem.rules.capture.sentences import Sentence

# Every cue holds one of these; most sentences of a long message hold none, and are done with at once.
_MAY_DEMAND = re.compile(
    r"n't\b|nt\b|\b(?:"
    + alternatives(
        r"""
        not|no|never|nothing|nobody|nowhere|other|zero|don|dnt|do'nt|without|forbid\w*|prohibit\w*|banned|taboo|verboten|unacceptable
        off|against|out of|stop\w*|quit|ceased?|refrain\w*|abstain|desist|knock|enough|avoid\w*|steer|hands|fingers|paws
        claws|mitts|nose|stay|keep|leave|alone|last time|end|hold|wait|hang|catch|hate|only|exclusively|solely|stick
        confine|restrict|limit|cap|at most|max\w*|always|ask\w*|check\w*|confirm\w*|verify|double|consult\w*|clear
        before|b4|w/o|cut|skip|treat|except|but|mind
        first|prior|beforehand|whenever|needs?|requires?|subject to|through|past|approved|signed|from now
        sacred|sacrosanct|untouchable|job|call|decision|responsibility|mine|human's|humans|read-only|read only|belong
        instead|rather|in place|prefer|must be|ha(?:s|ve) to be
        place|wait\w*|myself|think|trust|expect|spare|from here|from today|forward|future|henceforth|none of your
        business
        """
    )
    + r")\b"
)
_CUES = (*PROHIBITIONS, *WISHES, *BOUNDS, *HINTS)
# A question that is meant as a demand.
_POLITE_QUESTION = re.compile(
    r"\b(?:can|could|would|will) you (?:please |kindly |just |finally )*(?:stop|quit|refrain from|avoid)(?: \w+)? "
    r"\w+ing\b"
    r"|\b(?:can|could|would|will) you (?:please|kindly) (?:not|never|only|always|no longer|don't|avoid|refrain)\b"
    r"|\b(?:would|do) you mind (?:not|never) \w+ing\b|\b(?:can|could|shall) we (?:please )?agree that you\b"
    r"|\b(?:can|could|would|will) you (?:please |kindly )?(?:hold|hold off|wait with)\b"
)
_TELLS_SOMEBODY = re.compile(  # not "tell me", "tell lies"
    r"\s+(?:(?:my|our|his|her|their|any|the) (?!(?:truth|time|story|stories|difference|whole|same|name|password)\b)\w"
    r"|(?:anyone|anybody|customers|clients|people|strangers|others)\b)"
)
_TALKS_ABOUT_IT = re.compile(
    r"\W*(?:(?:so|and|but),? )?(?:(?:is|was|isn't) (?:that|this|it) (?:even |really |actually |still )?(?:wise|true"
    r"|right|correct"
    r"|legal|so|normal|usual|fair|reasonable|sensible|standard|common|still|a good|allowed|what|enforced|how)"
    r"|(?:do|does|did|will|would|should) (?:we|they|he|she|it|people|anyone|everybody) (?:\w+ )?(?:follow|break|keep"
    r"|obey"
    r"|comply|apply|respect|know|agree|hold)|what (?:do you think|does (?:that|it|this) mean))\b"
)
_TAG = re.compile(
    r"[,.;!:\-–—]?\s*\b(?:okay|ok|k|right|alright|all right|got it|got that|understood|(?:is that )?clear|deal|will "
    r"you|would you"
    r"|can you|could you|yes|yeah|please|agreed|(?:do )?you (?:hear me|understand)|thanks)\s*\?[^\w]*$"
)
_QUESTION_START = re.compile(
    r"\W*(?:(?:so|and|but|ok|okay|well|hey|hi|hello|please|also|now|then|wait|sorry|by the way|btw)[,\s]+)*(?:why"
    r"|how come|how"
    r"|what|who|where|which|when (?:do|does|did|is|are|can|will|should)|(?:do|does|did|is|are|was|were|has|have|had"
    r"|am|isn't"
    r"|aren't|doesn't|didn't|haven't|hasn't|wasn't|weren't) (?:you|i|it|he|she|they|we|there|this|that|the|my|your)"
    r"|don't you (?!dare|ever)|can you|could you|would you|will you|can i|may i|should i|shall i)\b"
)
_REVOKED = re.compile(
    r"\b(?:forget|ignore|scrap|lift|revoke|withdraw|drop|cancel|take back|undo|disregard) (?:what|the|my|that|this"
    r"|your|all)\b"
    r".{0,40}\b(?:rules?|bans?|said|told|instructions?|restrictions?)\b|\b(?:i|we) take (?:it|that) back\b"
    r"|\bno longer (?:need|have|necessary|required)\b|\b(?:don't|do not|needn't) (?:need|have) to\b"
)
# Nobody demands what is only supposed.
_SUPPOSED = re.compile(
    r"\W*(?:(?:and|but|so|ok|okay|well|just|now|please|can you|let's|let us)[,\s]+)*(?:suppos(?:e|ing)|imagine|pretend"
    r"|hypothetically|for the sake of argument|say (?:i|we|that|someone|a user)|assum(?:e|ing) (?:that )?(?:i|we|a"
    r"|someone|the user|my)"
    r"|(?:what )?if (?:i|we|someone|a user|the user) (?:said|say|told|tell|asked|ask|forbade|were to|wrote|had))\b"
)
_CONDITION = re.compile(
    r"^\W*(?:(?:and|but|so|please|ok|okay|well)[,\s]+)*(?:if|in case|should you|supposing|assuming)\b"
)
_ANY_DAY = re.compile(
    r"(?:it(?:'s| is) (?:after|before|past|late|night|the weekend|\w+day)\b|a|an|any\w*|some\w*|customers|clients"
    r"|users|people|i ever|you ever|it ever)\b"
)
_LOOKS_INFLECTED = frozenset({"bring", "ring", "sing", "swing", "embed", "shed", "focus", "bypass"})
_WITH_PARTICLE = frozenset(
    {
        "give",
        "go",
        "hold",
        "mess",
        "break",
        "hang",
        "shut",
        "show",
        "back",
        "calm",
        "let",
        "turn",
        "freak",
        "run",
        "make",
        "stay",
        "chicken",
        "wimp",
    }
)
_NEED_AN_OBJECT = frozenset(
    {
        "start",
        "stop",
        "keep",
        "leave",
        "try",
        "go",
        "ask",
    }
)  # "don't stop, you're doing great"
_OF_TABLES = frozenset({"drop", "truncate", "alter"})  # said of a database's tables, not of an answer's
_REASON = re.compile(
    r"[;:(]|\s[-–—]+\s|—|–|\.{2,}|…|\b(?:because|since|otherwise|or else|so that)\b"
    r"|,\s*(?:(?:and|but|so|as) )?(?:i|we|he|she|it|they|that|this|these|those|there|you|my|our|his|her|their|the"
    r"|thanks|thank)\b"
    r"|,\s*i'(?:m|ve|d|ll)\b|,\s*(?:it|that)'s\b|,\s*(?:just|simply|instead|rather|so|then|therefore|otherwise)\b"
)
_POINTS_BACK = re.compile(r"\b(?:it|them|that|those|this|these)\b")
# "Stop asking me and book it": after an -ing form, a base form begins another thought.
_NEXT_TASK = re.compile(r"(?:,| and| but|, and|, but) (?:please |just |then )?([a-z]+)\b")
_NO_DEMAND_AT_THE_END = re.compile(  # "..., the docs say"
    r"[,:]?\s*(?:(?:that's|that is|it's) (?:what|how) .{1,30}(?:says?|said|reads?|wrote|told me|put it)"
    r"|,\s*(?:says?|said) (?:the|their|his|her|my|a|our) [\w ]{1,24}|,\s*(?:it|they|he|she) (?:says?|said|claims?"
    r"|told me)"
    r"|(?:the|their|its) (?:docs?|documentation|manual|site|website|page|sign|shop|readme|changelog|label|internet"
    r"|article"
    r"|book|guide) (?:says?|said|claims?)|,\s*i (?:read|heard|believe|think|guess|was told|suppose)(?: somewhere)?)\W*$"
)


def read_english(sentence: Sentence) -> Reading | None:
    """The demand of an English sentence, or None."""
    text = small(sentence.masked)
    if not _MAY_DEMAND.search(text):
        return None
    if sentence.question:
        tag = _TAG.search(text)
        if tag is not None and not _QUESTION_START.match(text):
            text = text[: tag.start()]
        elif not _POLITE_QUESTION.search(text):
            return None
    elif _QUESTION_START.match(text) and not _POLITE_QUESTION.search(text):
        return None
    if _NO_DEMAND_AT_THE_END.search(text[-80:]) or _REVOKED.search(text) or _SUPPOSED.match(text):
        return None
    return combined([reading for cue in (*PROHIBITIONS, *WISHES, *BOUNDS, *HINTS) for reading in _readings(cue, text)])


def questions_it(sentence: Sentence) -> bool:
    """ "Is that wise?", "Do they keep to it?": the rule before it is talked about, not laid down."""
    return sentence.question and bool(_TALKS_ABOUT_IT.match(small(sentence.masked)))


def small(text: str) -> str:
    """Small letters and straight apostrophes, at the same positions."""
    small = text.replace("’", "'").replace("‘", "'").replace("*", " ").replace("\n", " ")
    lowered = small.lower()
    return lowered if len(lowered) == len(small) else "".join(c.lower() if len(c.lower()) == 1 else c for c in small)


def _readings(cue: Cue, text: str) -> list[Reading]:
    readings = []
    for match in cue.pattern.finditer(text):
        start = match.start()
        if not cue.placed(text, start) or shown_after_colon(text, start):
            continue
        groups = match.groupdict()
        verb, after = groups.get("verb") or "", match.end("verb") if groups.get("verb") else match.end()
        about_subject = cue.asks or cue.placed in (own_subject, anywhere, after_topic)
        needs_tool = cue.needs_tool or (bool(verb) and not _acts(verb, text[after:]))
        needs_tool = needs_tool and not (cue.asks and _asks_of_acts(text[after:]))
        if cue.acting and not _stems(verb) & ACTION_VERBS:
            continue
        if (cue.base_verb and not _is_base(verb)) or (not cue.subject_is_tool and _is_idle(verb, text[after:])):
            continue
        of_subject = cue.placed is own_subject
        end = _end_of_demand(text, after, verb, of_subject)
        condition = _CONDITION.match(text[:start]) if cue.strength <= Strength.SOFT else None
        if condition is not None and not _lasting_condition(text[condition.end() : start], text[start:end]):
            continue  # "if it rains, don't bother": about this one case
        clause = clause_start(text, start) if about_subject else start
        clause = 0 if cue.placed is after_topic else clause
        subject = text[clause:start] if of_subject else ""
        by_itself = needs_tool and not cue.asks and not (of_subject and _POINTS_BACK.search(text[clause:end]))
        needs_tool = needs_tool or (not _stems(verb) & _OF_TABLES and _is_of_style(text[start:end]))
        kind = kind_of(cue.strength, text, verb, start, after, end, subject)
        readings.append(Reading(kind, clause, start, end, needs_tool, by_itself, cue.subject_is_tool))
    return readings


def _lasting_condition(condition: str, demand: str) -> bool:
    """ "If a customer asks, ..." may come up any day; "if it rains, ..." is about this one."""
    return bool(_ANY_DAY.match(condition.strip()) or re.search(r"\b(?:never|always|ever|without)\b", demand))


def _end_of_demand(text: str, after: int, verb: str, of_subject: bool) -> int:
    reason = _REASON.search(text, after)
    end = reason.start() if reason is not None else len(text)
    if verb.endswith("ing") or of_subject:
        for task in _NEXT_TASK.finditer(text, after, end):
            if task[1] in ACTION_VERBS and (not of_subject or task[0].startswith(",")):
                return task.start()
    return end


def _stems(verb: str) -> set[str]:
    """What the base form of an inflected verb may be."""
    verb = verb.split()[-1] if verb else verb
    stems = {verb, IRREGULAR.get(verb, verb)}
    for ending in ("ing", "ed", "d", "s", "es"):
        if verb.endswith(ending) and len(verb) > len(ending) + 1:
            stem = verb[: -len(ending)]
            stems |= {stem, stem + "e"}
            if len(stem) > 2 and stem[-1] == stem[-2]:
                stems.add(stem[:-1])
    return stems


def _acts(verb: str, rest: str) -> bool:
    """Is this verb about acting, whatever the object?"""
    if re.match(rf"\s*{MANNER_AFTER}", rest) and not _stems(verb) & {
        "transfer",
        "charge",
        "bill",
        "email",
        "contact",
        "track",
    }:
        return False
    return bool(_stems(verb) & ACTION_VERBS) or "_" in verb or (verb == "tell" and bool(_TELLS_SOMEBODY.match(rest)))


def _is_base(verb: str) -> bool:
    """Could "don't <verb>" be said? Not "never in", "never received", "never has"."""
    if verb in NOT_VERBS:
        return False
    if verb in ACTION_VERBS or verb in IDLE_VERBS or "_" in verb or "-" in verb:
        return True
    if verb in _LOOKS_INFLECTED or verb.endswith(("eed", "ss")):
        return True
    return not verb.endswith(("ing", "ed", "s"))


def _is_of_style(demand: str) -> bool:
    return re.search(rf"\b(?:{STYLE})\b", demand) is not None


def _asks_of_acts(rest: str) -> bool:
    """ "Ask me before you take any action": what comes after "before" is something that an agent does."""
    words = re.findall(r"[a-z]+", rest[:80])
    return any(_stems(word) & ACTION_VERBS for word in words[:8]) and not re.search(STYLE, rest)


def _is_idle(verb: str, rest: str) -> bool:
    if re.match(r"\s+(?:up|in(?= to)|away|out(?! to)|down|back|over it)\b", rest) and verb in _WITH_PARTICLE:
        return True
    if verb == "let" and re.search(r"\b(?:fail|slip|happen|die|crash|down|expire|break|escape|go to waste)\b", rest):
        return True
    if verb == "tell" and _TELLS_SOMEBODY.match(rest):
        return False
    if verb in _NEED_AN_OBJECT and not re.match(r"\s+\w", rest):
        return True
    if verb == "mention" and not re.match(r"\s+(?:it|that)\b|\W*$", rest):
        return False
    if verb.startswith("look") and re.match(r"\s+(?:up|into|in|through|at)\b", rest):
        return False
    return bool(_stems(verb) & IDLE_VERBS) and not (_stems(verb) & ACTION_VERBS)
