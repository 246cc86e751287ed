"""The forms in which an English sentence forbids or bounds without one of the plain words for it."""

from __future__ import annotations

from toolmem.rules.capture.english_cue import ADVERBS, DO_NOT, DONE, ING, PASSIVE, VERB, WOULD, Cue, I, any_of, cue
from toolmem.rules.capture.english_duration import Strength
from toolmem.rules.capture.english_places import after_topic, anywhere, asked, at_start, for_good, not_told, own_subject

_KEPT = any_of(
    r"sacred",
    r"sacrosanct",
    r"untouchable",
    r"my (?:job|business|call|decision|responsibility)",
    r"mine to \w+",
    r"(?:solely |entirely )?up to (?:me|us)",
    r"a human's job",
    r"for humans only",
    r"(?:strictly )?read[- ]only (?:for|to) you",
    r"not for you",
)

_GLAD_IF = (
    r"\b(?:i|we|it)(?:'d| would)(?: \w+)? (?:(?:be|make me|make us) (?:\w+ )?(?:happy|glad|grateful|thankful|happier"
    r"|nice|great|good"
    r"|better|best|lovely|helpful|thankful|obliged)|appreciate(?: it)?|prefer(?: it)?|like it)(?: for (?:me|us))?,?"
    r" (?:if|that)(?:,? (?:in (?:the )?future|from now on|going forward|generally),?)?"
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
        r"(?:",
        WOULD,
        r")? (?:rather|prefer to|always|want to) \w+ .{1,40}? myself\b",
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
        r"(?:",
        WOULD,
        r")? (?:want|need|expect|like|trust) you to (?:always |please )?(?:ask|check with|consult|tell|warn) (?:me )?"
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
    cue(Strength.MUST, asked, r"\b(?:leave|keep) (?:[\w'-]+ ){1,5}?out of\b", needs_tool=True),
    cue(
        Strength.VERY,
        not_told,
        I,
        rf" (?:{DO_NOT} ever|never)(?: ever)? (?:want|wish|care|need) to (?:see|find|get|receive|hear about) ",
        needs_tool=True,
    ),
    # "Refunds only with approval", "one message a day is the maximum"
    cue(
        Strength.MUST,
        after_topic,
        r"\s(?:strictly )?only (?:with|after|on|between|if|when|via|up to|to|from|through|by|during|within|before)\b"
        r"(?!.*\b(?:is|are|was|were|works?|goe?s?|has|have|had)\b)",
        needs_tool=True,
        subject_is_tool=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:(?:per|each|every|an?) (?:day|week|month|year|hour|question|request|session|task|person|customer)"
        r"|daily|weekly)"
        r" (?:is|are) (?:the|your|my) (?:absolute )?(?:maximum|max|limit|most|cap)\b",
        needs_tool=True,
    ),
    cue(Strength.MUST, at_start, r"\bspare (?:me|us)\b", needs_tool=True),
    # "Nothing goes out by mail from now on", "I'd be glad if in future you uploaded nothing", "... if no mail was sent"
    cue(Strength.MUST, at_start, r"\bnothing (?:may|must|shall|should|is to) (?:ever )?[a-z]+", needs_tool=True),
    cue(Strength.MUST, for_good, rf"\bnothing (?:goes|leaves|(?:gets|is)(?: ever)? {DONE})", needs_tool=True),
    cue(Strength.MUST, not_told, _GLAD_IF, r" no(?:thing|body| one| \w+)\b", needs_tool=True),
    cue(
        Strength.MUST,
        not_told,
        _GLAD_IF,
        r" you(?:'d| would| could)? (?:please |only )?",
        VERB,
        r"(?: \w+)? (?:nothing|nobody|no one|no|only)\b",
        needs_tool=True,
    ),
    # "The camera must not film", "e-mails may only go to", "customers must not get more than two messages"
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:(?:must|may|shall|is to|are to) (?:not|never|only)|should never)(?: ever)?(?: to)? (?!have\b)",
        ADVERBS,
        VERB,
        base_verb=True,
        needs_tool=True,
        subject_is_tool=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:must|should|may|shall|are to|is to) (?:not|never)(?: ever)? (?:get|receive|have|see|be sent)"
        r" (?:more than|any|another)\b",
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:may|must|should|shall|are to) (?:only )?",
        PASSIVE,
        r" (?:[^,;]{0,60}? )?only\b",
        needs_tool=True,
    ),
    # "Whatever happens, you do not write to him", "we agreed that you don't push any more"
    cue(
        Strength.VERY,
        not_told,
        r"\b(?:whatever happens|no matter what|from now on|in (?:the )?future|henceforth|going forward|as of (?:now"
        r"|today)"
        r"|we(?:'ve| have)? agreed|i (?:said|told you|repeat|insist))\b,? (?:that )?(?:please )?you"
        r" (?:do not|don't|dont|will not|won't|never|no longer) (?:ever )?",
        ADVERBS,
        VERB,
        base_verb=True,
    ),
    # "You may write there and nowhere else", "you can use it, but no more than five times a day"
    cue(
        Strength.MUST,
        not_told,
        r"\byou (?:may|can|have (?:my )?permission to|are (?:free|allowed|welcome) to) ",
        VERB,
        r" .{0,80}?\b(?:(?:nowhere|nothing|no ?one|nobody) else|no other|no more than|not more than|at most"
        r"|max(?:imum)?"
        r"|but (?:never|only|not (?:for|to|in|on|with|without|after|before|at|if))\b"
        r"|(?<=any )(?:\w+ ){1,4}?(?:except|but|other than|apart from)|(?:any|every)(?:thing|one|body"
        r"|where) (?:except|but"
        r"|other than|apart from))\b",
        base_verb=True,
        needs_tool=True,
    ),
    # "Make sure that no mail is sent", "it would be better not to call them"
    cue(
        Strength.MUST,
        asked,
        r"\b(?:make (?:\w+ )?sure|ensure|see to it|take care)(?: that)? (?:no|nothing|none of)\b[^,;]{0,60}?"
        r" (?:is|are|gets?|will be) (?:being |ever )?(?P<verb>",
        DONE,
        r")",
        needs_tool=True,
        acting=True,
    ),
    cue(
        Strength.MUST,
        asked,
        r"\b(?:make (?:\w+ )?sure|ensure|see to it|take care)(?: that)? (?:no|nothing|none of)\b[^,;]{0,60}?"
        r" (?:goes? out|leaves?)\b",
        needs_tool=True,
    ),
    cue(
        Strength.SOFT,
        not_told,
        r"\bit(?:'d| would) be (?:\w+ )?(?:better|best|good|nice|great|wise|wiser|preferable|safer) not to (?:ever )?",
        ADVERBS,
        VERB,
        base_verb=True,
        acting=True,
        needs_tool=True,
    ),
    cue(Strength.SOFT, at_start, r"\bskip (?:the|this|that|my|our|any|all)\b", needs_tool=True),
    cue(
        Strength.MUST,
        at_start,
        r"\btreat .{1,40}? as (?:read[- ]only|off[- ]limits|untouchable|forbidden)",
        needs_tool=True,
    ),
    # "I'm the only one who pushes to main"
    cue(
        Strength.MUST,
        not_told,
        r"\bi(?:'m| am) the only (?:one|person) (?:who|that|(?:allowed )?to) ",
        VERB,
        needs_tool=True,
    ),
    cue(Strength.MUST, not_told, r"\byou(?:'re| are) not welcome (?:in|on|at)\b", needs_tool=True),
    cue(Strength.STOP, anywhere, r"\bif (?:i|we) (?:ever )?(?:catch|see|find) you (?:\w+ly )?", ING),
    # "Stop that for a moment"
    cue(
        Strength.NOW,
        at_start,
        r"\bstop (?:it|that|this|everything|all of (?:it|that))(?= (?:for|until|till|while)\b)",
    ),
)
