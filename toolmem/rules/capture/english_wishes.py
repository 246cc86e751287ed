"""The forms in which an English sentence forbids something in the first person."""

from __future__ import annotations

from toolmem.rules.capture.english_cue import ADVERBS, DO_NOT, DONE, ING, PASSIVE, VERB, WOULD, Cue, I, cue
from toolmem.rules.capture.english_duration import Strength
from toolmem.rules.capture.english_places import anywhere, at_start, not_told

_WANT = r"(?:want|like|wish|expect|allow|permit|authori[sz]e|need|tolerate|accept|have)"

WISHES: tuple[Cue, ...] = (
    # The first person: "I don't want you to send", "I'd rather not be transferred"
    cue(
        Strength.SOFT,
        not_told,
        I,
        r" (?:",
        DO_NOT,
        r"|wouldn't|would not|won't|will not|can't|cannot)(?: \w+ly)? (?:ever )?",
        _WANT,
        r"(?: it if| for)? (?:to have |to see )?you (?:to )?(?:ever |be )?",
        VERB,
    ),
    cue(Strength.VERY, not_told, I, r" never (?:ever )?", _WANT, r" (?:to have |to see )?you (?:to )?(?:ever )?", VERB),
    cue(
        Strength.SOFT,
        not_told,
        r"\b(?:i|we|it)",
        WOULD,
        r" (?:rather|prefer(?: it)?(?: if| that)?|like it if|appreciate it if"
        r"|be (?:\w+ )?(?:happy|glad|grateful|thankful|happier|nice|great|good|better|best|lovely|helpful)(?: for me"
        r"| for "
        r"us)? if"
        r"|help(?: \w+){0,6} if)(?:,? (?:in (?:the )?future|from now on|going forward|generally),?)? you"
        r" ?(?:didn't|did not|don't|do not|wouldn't|would not|not|never|'d not|could not) (?:ever )?",
        ADVERBS,
        VERB,
    ),
    cue(
        Strength.MUST,
        not_told,
        I,
        r" (?:[a-z]+ ){1,3}?you (?:(?:an?|one|hundred|thousand|many|several|so|\d+|times?|before|already|again"
        r"|often) ){0,5}"
        r"(?:not|never) to (?:ever )?",
        ADVERBS,
        VERB,
        base_verb=True,
    ),
    cue(Strength.STOP, not_told, r"\b(?:would|do) you mind (?:not|never) ", ING),
    cue(Strength.MUST, not_told, I, WOULD, r" hate (?:it )?(?:if|for) you (?:to )?", VERB, needs_tool=True),
    cue(
        Strength.SOFT,
        not_told,
        I,
        r" ",
        DO_NOT,
        r" (?:want|like|need|allow|accept|tolerate) (?:any |more |any more |to see any )?",
        ING,
        needs_tool=True,
    ),
    cue(Strength.VERY, anywhere, r"\blet me (?:not |never )?catch you ", ING),
    cue(
        Strength.MUST,
        at_start,
        r"\bthere (?:will|shall|must|should|are to|is to) (?:not )?be (?:absolutely )?no (?:more )?",
        needs_tool=True,
    ),
    cue(
        Strength.STOP,
        not_told,
        r"\b(?:if|rather|prefer|time|wish)(?:,? (?:in (?:the )?future|from now on|going forward),?)?"
        r" you(?:'d| would| could)? (?:finally |please |just )?"
        r"(?:stop|stopped|quit|ceased|avoided|refrained from) ",
        ING,
    ),
    cue(Strength.VERY, not_told, I, WOULD, r" (?:rather|prefer(?: it)?(?: if| that)?) you never ", VERB),
    cue(
        Strength.MUST,
        not_told,
        I,
        r" (?:",
        DO_NOT,
        r"|never|no longer)(?: \w+ly)? (?:ever )?(?:want|wish|like|need) to (?:ever )?",
        PASSIVE,
    ),
    cue(
        Strength.MUST, not_told, I, WOULD, r" (?:rather|prefer|like)(?: to)? (?:not|never)(?: to)? (?:ever )?", PASSIVE
    ),
    cue(
        Strength.VERY,
        not_told,
        I,
        r" (?:",
        DO_NOT,
        r"|never|no longer) (?:ever )?(?:want|wish)"
        r" (?:to (?:see|get|receive|find|have) )?(?:any|another|a single|more|my|our|your|the(?= [\w -]*s\b))\b"
        r"(?=.*\b(?:ever|again|any ?more|from now on|never)\b)",
        needs_tool=True,
    ),
    cue(
        Strength.SOFT,
        not_told,
        I,
        r" (?:",
        DO_NOT,
        r"|never) (?:ever )?(?:want|wish|like|allow) (?:any of |any |all )?"
        r"(?!you\b|to\b|it\b)[a-z]+\b(?: [\w'-]+){0,4}? (?P<verb>",
        DONE,
        r")",
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        not_told,
        I,
        r"(?:'m| am|'re| are)? ?(?:hereby )?(?:forbid|prohibit|forbidding|prohibiting) you (?:to|from) ",
        VERB,
    ),
    cue(
        Strength.MUST,
        not_told,
        I,
        r"(?:'m| am|'re| are)? ?(?:hereby )?(?:forbid|prohibit|forbidding|prohibiting)\b",
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        not_told,
        I,
        r"(?:'m| am|'re| are| feel| do)? ?(?:not|",
        DO_NOT,
        r"|hate|dislike|object to)"
        r" ?(?:\w+ly )?(?:okay|ok|comfortable|happy|fine|like|want|appreciate|agree)?(?: it)? ?(?:with|to|when|that"
        r"|seeing|about)? ?you ",
        VERB,
        needs_tool=True,
    ),
)
