"""The forms in which an English sentence forbids or bounds without one of the plain words for it."""

from __future__ import annotations

from toolmem.rules.english_cue import DO_NOT, VERB, WOULD, Cue, I, any_of, cue
from toolmem.rules.english_duration import Strength
from toolmem.rules.english_places import at_start, not_told, own_subject

_KEPT = any_of(
    r"sacred",
    r"sacrosanct",
    r"untouchable",
    r"my (?:job|business|call|decision|responsibility)",
    r"mine to \w+",
    r"a human's job",
    r"for humans only",
    r"(?:strictly )?read[- ]only (?:for|to) you",
    r"not for you",
)

HINTS: tuple[Cue, ...] = (
    # "Refunds are my job", "birthdays don't belong in my calendar", "deploys wait for my okay"
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:is|are|stays?|remains?) (?:and (?:stays?|remains?) )?",
        _KEPT,
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        rf"\b(?:{DO_NOT}|does not|doesn't|never) (?:belong|go) (?:in|into|on|to)\b"
        r"|\b(?:have|has) no (?:place|business) (?:in|on)\b",
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:waits?|must wait|has to wait|have to wait) (?:for|until) (?:i|my|me)\b",
        needs_tool=True,
    ),
    # "I'd rather handle refunds myself", "I don't think you should ever push"
    cue(
        Strength.MUST,
        not_told,
        I,
        WOULD,
        r"? (?:rather|prefer to|always|want to) \w+ .{1,40}? myself\b",
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        not_told,
        I,
        rf" {DO_NOT} think you (?:should|ought to) (?:ever )?",
        VERB,
        base_verb=True,
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        not_told,
        I,
        WOULD,
        r"? (?:want|need|expect|like|trust) you to (?:always |please )?(?:ask|check with|consult|tell|warn) (?:me )?"
        r"(?:first|before)\b",
        needs_tool=True,
        asks=True,
    ),
    # "Send no mail to ...", "delete nothing", "keep my boss out of your mails", "spare me the Slack pings"
    cue(
        Strength.SOFT,
        at_start,
        r"\b",
        VERB,
        r" (?:nothing|nobody|no one|none of|no(?! (?:mistake|more than|later|matter|problem|need)\b))\b",
        base_verb=True,
        acting=True,
        needs_tool=True,
    ),
    cue(Strength.MUST, at_start, r"\b(?:leave|keep) (?:[\w'-]+ ){1,5}?out of\b", needs_tool=True),
    cue(Strength.MUST, at_start, r"\bspare (?:me|us)\b", needs_tool=True),
)
