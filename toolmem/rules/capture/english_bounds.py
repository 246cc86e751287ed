"""The forms in which an English sentence bounds something: only, always, ask me before, at most."""

from __future__ import annotations

from toolmem.rules.capture.english_cue import LEAVE, PASSIVE, VERB, Cue, any_of, cue
from toolmem.rules.capture.english_duration import Strength
from toolmem.rules.capture.english_places import after_topic, asked, at_start, not_told, own_subject

_ASK = any_of(
    r"ask(?:ing)? (?:me|us|first|for (?:my|our|permission|approval|confirmation))",
    r"consult(?:ing)? (?:me|us)",
    r"(?:check|confirm|verify|double[- ]check|clear|discuss|agree|coordinate|talk)(?:ing)? (?:[\w-]+ ){0,5}?with "
    r"(?:me|us)",
    rf"(?:get|obtain|wait for|seek|have) (?:[\w-]+ ){{0,3}}{LEAVE}(?= .{{0,40}}before\b)",
    r"(?:ask|check|confirm|double[- ]check)(?= (?:before|first|prior to)\b)",
    r"(?:ask|consult|(?:check|confirm|clear it) with) (?:\w+ ){1,3}"
    r"(?=before (?:you \w+|\w+ing) (?!(?:it|that|this|the|them|him|her)\b)[a-z])",
    rf"(?:get|getting|obtain|wait for|waiting for|seek|request|have|need|require) (?:\w+ )?(?:my|our)(?: "
    rf"\w+){{0,2}}? {LEAVE}",
    r"(?:run|pass|clear) .{1,60}? (?:by|past|with) (?:me|us)",
    r"(?:show|tell|notify|warn|alert|ping|inform|give|send|let) (?:me|us)(?=.{0,60}\b(?:first|beforehand"
    r"|(?:before|prior to|whenever|every time|each time) (?:you|\w+ing|any\w*|every\w*|each|an?)\b))",
    r"wait for (?:me|us)",
)
_ALWAYS_ASK = any_of(
    "ask",
    "check",
    "confirm",
    "consult",
    "get",
    "wait",
    "request",
    "obtain",
    "seek",
    "show",
    "run",
    "clear",
    "tell",
    "notify",
    "warn",
    "let me",
    "have me",
    "double[- ]check",
    "verify",
    "make",
    "take",
    "create",
    "test",
)
_DO = any_of(
    "use",
    "read",
    "write",
    "run",
    "execute",
    "book",
    "send",
    "pay",
    "push",
    "deploy",
    "query",
    "search",
    "post",
    "open",
    "translate",
    "e-?mail",
    "work",
    "touch",
    "delete",
    "create",
    "connect",
    "commit",
    "browse",
    "refund",
    "schedule",
    "issue",
    "call",
    "merge",
)
_MAY = (
    r"(?:may|can|must|should|shall|could|have to|need to|are|will)(?: allowed| permitted)?(?: to)? (?:only|exclusively)"
    r"|(?:are )?only (?:ever )?(?:may|can|should|get to|are allowed to|allowed to|permitted to|have permission to|to)"
)
_WHEN = r"(?:when|if|after|with|in|on|from|to|between|for|during|inside|once|as|by|at|where|against|within)"
_EACH = (
    r"\b(?:per|an|each|every|in one)\b|\ba (?:day|week|month|year|question|request|turn|session|task|person|customer"
    r"|time)\b"
)
_SUM = (
    r"(?:[$€£¥]\s?\d[\d.,]*k?"
    r"|\d[\d.,]*k? ?(?:euros?|eur|dollars?|usd|pounds?|gbp|yuan|rmb|chf|francs?|bucks|percent|%|€|\$|£))"
)
_FROM_NOW = (
    r"(?:from (?:now|here|today) (?:on|onwards?|forward)|going forward|moving forward|in (?:the )?future|henceforth)"
)

BOUNDS: tuple[Cue, ...] = (
    # "Only use staging", "use only staging", "you may only read", "only I delete files"
    cue(
        Strength.MUST,
        at_start,
        r"\b(?:only|exclusively) (?:ever )?(?:to )?",
        VERB,
        r"(?!(?: [\w-]+){0,2} (?:is|are|was|were|left|remains?|came|exists?)\b)",
        base_verb=True,
    ),
    cue(
        Strength.MUST,
        at_start,
        r"\b(?P<verb>",
        _DO,
        r") (?:[\w']+ ){0,3}?(?:only|exclusively|nothing but|solely) ",
        _WHEN,
        r"?\b",
    ),
    cue(Strength.MUST, not_told, r"\byou(?:'re| are)? (?:", _MAY, r") (?:ever )?(?:to )?", VERB, base_verb=True),
    cue(
        Strength.MUST,
        not_told,
        r"\byou (?:may|can|are allowed to) ",
        VERB,
        r" .{0,80}?\bonly (?=",
        _WHEN,
        r"\b)",
        base_verb=True,
    ),
    cue(
        Strength.MUST,
        at_start,
        r"\bonly (?:i|we|my \w+|our \w+|humans?|a human)(?: and \w+)? (?:may |can |should |get to )?(?!\w+ed\b)",
        VERB,
        needs_tool=True,
        acting=True,
    ),
    cue(
        Strength.MUST,
        at_start,
        r"\b(?:stick to|(?:confine|restrict|limit) (?:yourself|all [\w-]+|any [\w-]+|[\w-]+s) to|stay (?:within"
        r"|inside|in))\b",
        needs_tool=True,
    ),
    # "Deploy to staging only", "use the replica, never the primary"
    cue(
        Strength.SOFT,
        at_start,
        r"\b(?P<verb>",
        _DO,
        r") (?<=use |end |ost |ush |loy |mit |rge |ect |ork |pay |run |ute |ite )"
        r"(?:to|on|in|from|with|via|against|over|through|during|for) [\w .@/-]{1,40}? only(?=\W*$|[,;.!])",
        needs_tool=True,
    ),
    cue(
        Strength.VERY,
        asked,
        r"\b(?P<verb>",
        _DO,
        r") [^,;]{1,80}?(?:,| but| and|, but|, and) never (?:straight |directly |ever )?"
        r"(?:to|on|in|into|from|with|via|at|against|the|my|our|an?)\b",
        needs_tool=True,
    ),
    # "Payments: only on Mondays", "deleting files = never"
    cue(
        Strength.MUST,
        after_topic,
        r"(?:\s?[:=]|\s[-–—])\s*(?:(?:only|strictly) (?!(?:the|an?|one|two|three|\d+)\b)|never\b|no more than|at most"
        r"|max\b"
        r"|forbidden|off[- ]limits|not (?:without|before|on|in|for|after|at)\b|[a-z]+ only\b)",
        needs_tool=True,
        subject_is_tool=True,
    ),
    cue(
        Strength.MUST,
        after_topic,
        r"\s(?:max(?:imum|\.)?|at most|no more than) \S+.{0,40}(?:",
        _EACH,
        r")",
        needs_tool=True,
        subject_is_tool=True,
    ),
    # "At most three searches per question"
    cue(
        Strength.MUST,
        at_start,
        r"\b(?P<verb>",
        _DO,
        r") [^,;]{1,60}?\b(?:no more than|not more than|at most|max(?:imum)?)\b.{0,40}?(?:",
        _EACH,
        r")",
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:needs?|requires?|must (?:have|get)) (?:\w+ ){0,3}?(?:signatures?|approvals?|reviews?|confirmations?"
        r"|sign[- ]?offs?)"
        r"\b(?=.{0,40}\b(?:before you|first)\b)",
        needs_tool=True,
        subject_is_tool=True,
    ),
    cue(
        Strength.MUST, at_start, r"\b(?:no|never|not) more than (?:\w+ ){1,4}?.{0,40}?(?:", _EACH, r")", needs_tool=True
    ),
    cue(
        Strength.MUST,
        at_start,
        r"\b(?:at most|max(?:imum|\.)?|(?:limit|keep|restrict) (?:yourself|it|them|that) to) \w+ .{0,40}?(?:",
        _EACH,
        r")",
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        at_start,
        r"\b(?:keep|cap|limit) (?:all |any |my |the |our )?[\w ]{2,30}? (?:under|below|at|to|within) [$€£]?\d",
        needs_tool=True,
    ),
    # "Always ask me before you delete", "ask before deleting", "every payment needs my okay"
    cue(
        Strength.VERY,
        at_start,
        r"\balways (?:please )?",
        _ALWAYS_ASK,
        r"\b.*?\b(?:before|first|prior to|until)\b",
        asks=True,
    ),
    cue(
        Strength.MUST,
        at_start,
        r"\b(?:always|please|and) ",
        _ASK,
        r" ?.*?\b(?:before|first|prior to|beforehand|each time|every time)\b",
        needs_tool=True,
        asks=True,
    ),
    cue(
        Strength.MUST,
        not_told,
        r"\b(?:you (?:must|should|have to|need to|shall|are to|will)(?: always)?|you always (?:must|should|have to"
        r"|need to)"
        r"|i want you to(?: always)?) ",
        _ASK,
        r" ?.*?\b(?:before|first|prior to|beforehand|each time|every time)\b",
        needs_tool=True,
        asks=True,
    ),
    cue(
        Strength.MUST,
        at_start,
        r"\b",
        _ASK,
        r" ?.{0,60}?\b(?:before|prior to|every time|each time|whenever)\b",
        needs_tool=True,
        asks=True,
    ),
    cue(
        Strength.MUST,
        at_start,
        r"(?<=[,:] )(?:please |always |you must |you have to |you should )*",
        _ASK,
        r"(?= first\b|\W*$)",
        needs_tool=True,
        asks=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:needs?|requires?|must have|(?:is|are) subject to|only with|never without|not without) (?:my|our) "
        r"(?:\w+ )?",
        LEAVE,
        r"\b",
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:must|should|has to|have to|need to|needs to|are to|is to) (?:all |always |first )?(?:go through|pass"
        r"|be approved by"
        r"|be confirmed by|be signed off by|be checked by|be cleared (?:by|with)|be run by|come through) (?:me|us|my"
        r"|our)\b",
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        not_told,
        r"\bi(?:'d| would)? (?:want|need|have|like|insist|get|must|expect)(?: to| on)? (?:seeing|approving|see"
        r"|approve|review|check"
        r"|confirm|read|sign off on|okay|ok|know about|look at|be asked|be told|be consulted)\b.*\b(?:before|first"
        r"|beforehand)\b",
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:must|has to|have to|needs? to|should) (?:always |first )?be (?:shown|sent|submitted|reported"
        r"|presented) to"
        r" (?:me|us)\b(?=.*\b(?:before|first|beforehand)\b)",
        needs_tool=True,
    ),
    # "Before you pay anything, show me the invoice"
    cue(
        Strength.MUST,
        at_start,
        r"\bbefore (?:you \w+|\w+ing) (?=[^,]{0,50}\b(?:any\w*|every\w*|an?|each|[a-z]+[^s\W]s)\b)"
        r"(?![^,]*\b(?:the|this|that|these|it|my)\b)[^,]{1,60}, (?:please |always |you (?:must|have to|need to"
        r"|should) )*"
        r"(?:show|tell|notify|warn|ask|get|consult|check)\b",
        needs_tool=True,
        asks=True,
    ),
    cue(Strength.MUST, own_subject, r"\b(?:goes|go|run|runs) (?:through|by|past) (?:me|us|my \w+)\b", needs_tool=True),
    cue(
        Strength.MUST,
        at_start,
        r"\bleave (?:all |any |the |my |our )?[\w -]{2,40}? (?:to|up to) (?:me|us)\b",
        needs_tool=True,
    ),
    # "Always use --dry-run", "from now on use the staging database"
    cue(Strength.VERY, at_start, r"\balways (?:please )?", VERB, base_verb=True, needs_tool=True),
    cue(
        Strength.VERY,
        not_told,
        r"\byou (?:must|should|have to|need to|shall|are to) always ",
        VERB,
        base_verb=True,
        needs_tool=True,
    ),
    cue(
        Strength.VERY,
        at_start,
        r"\b",
        _FROM_NOW,
        r",? (?:please |you |only |always |just )*",
        VERB,
        base_verb=True,
        needs_tool=True,
    ),
    cue(Strength.VERY, at_start, r"\b(?P<verb>", _DO, r")\b.{1,120}?\b", _FROM_NOW, r"\W*$", needs_tool=True),
    cue(
        Strength.VERY,
        own_subject,
        r"\b(?:must|should|shall|have to|are to) (?:all )?(?:always|only) ",
        PASSIVE,
        needs_tool=True,
    ),
    # "Emails to customers must always be in German", "meetings always go into the afternoon"
    cue(
        Strength.VERY,
        own_subject,
        r"\b(?:must|should|shall|has to|have to|needs? to|are to|is to) (?:all )?(?:always|only|never)"
        r" (?:be|go|stay|remain)\b",
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:must|has to|have to|needs? to) be (?:written |sent )?in"
        r" (?:english|german|french|spanish|italian|chinese)\b",
        needs_tool=True,
    ),
    # "Use pnpm instead of npm", "prefer rebase over merge"
    cue(
        Strength.SOFT,
        at_start,
        r"\b(?:(?P<verb>use|call|run|take)|prefer) [\w@./-]+(?: [\w@./-]+){0,3}?,?"
        r" (?:instead of|rather than|in place of|over|not) "
        r"(?!(?:this|that|these|those|it|him|her|them|me|to|for|in|on|at|sure|yet|now)\b)\w",
        needs_tool=True,
    ),
    # "Above 500 euros, ask me"
    cue(
        Strength.MUST,
        at_start,
        r"\b(?:above|over|beyond|from|for (?:\w+ ){0,3}?(?:above|over|beyond|more than)"
        r"|(?:if|when|whenever) (?:it|\w+|(?:the|an?) \w+) (?:is|are|costs?|exceeds?|goes)"
        r"(?: \w+)?(?: above| over| more than)?)"
        rf" {_SUM},? (?:please |always |you (?:must|have to|need to) )*"
        r"(?:ask|check with|consult|confirm with|tell|call|get|wait for)\b",
        asks=True,
    ),
    cue(
        Strength.MUST,
        at_start,
        r"\b(?:ask|check with|consult|confirm with) (?:me|us)(?: first)? (?:for (?:anything|everything|all \w+) )?"
        rf"(?:above|over|beyond|from) {_SUM}",
        asks=True,
    ),
)
