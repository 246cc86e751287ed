"""How long an English demand holds: for good, or for this one task, object or moment."""

from __future__ import annotations

import re
from enum import IntEnum

from toolmem.rules.capture.english_words import alternatives, words_of
from toolmem.rules.capture.reading import Kind


class Strength(IntEnum):
    """What the cue itself says about how long; the weaker it is, the more the object decides."""

    NOW = 0  # "hold off": this moment
    SOFT = 1  # "don't"
    MUST = 2  # "you must not", "avoid", "only"
    STOP = 3  # "stop ...ing": a habit
    VERY = 4  # "never"


_FOR_GOOD = re.compile(
    r"\b(?:"
    + alternatives(
        r"""
        never|ever|always|from today|(?:the|my|our|one|a|new|golden) rule(?= is\b| from\b|:|,| number\b)
        from (?:now|here|today|this (?:day|point|moment)) (?:on|onwards?|forward)|going forward
        moving forward|in (?:the )?future|henceforth|for good|permanently|forever
        under (?:no|any) (?:circumstances?|conditions?)
        on no account|in no case|at no time|every (?!one\b|body\b|thing\b)\w+|each (?!other\b)\w+
        that (?:holds|goes|applies) for|any longer|as a rule|at all times|in general|generally|by default|whenever
        no matter|once and for all|for the last time|i mean it|whatsoever
        altogether
        """
    )
    + r")\b"
)
_AGAIN = re.compile(r"\b(?:again|any ?more|no longer|no more)\b")
_DAY = (
    r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|tomorrow|tonight|noon|midnight|then|christmas"
    r"|easter|next week)"
)
_PASSING = re.compile(
    r"\b(?:for the (?:next|rest of)|(?:in|over|within) the next|for (?:an?|one|two|three|a few|a couple of|\d+)"
    r" (?:seconds?|minutes?|mins?|hours?|days?)|over the weekend|(?<!from )(?<!starting )(?<!as of )tomorrow|yet"
    r"|for now|right now|not now|at the moment"
    r"|at this moment|for the moment|for the time being|for the "
    r"present|today|tonight"
    r"|this (?:time|once|morning|afternoon|evening|week|weekend|month|night|round|turn|session|chat|conversation"
    r"|thread|instant)"
    r"|just (?:this )?once|until|till|'til|meanwhile|in the meantime|currently|as long as|so long as|at present"
    r"|temporarily"
    r"|while (?:i'm|i am|i|the|we're|we are|we|she|he|they|it|this|that|my|our)|during (?:the|this|my|our)|(?:not"
    r"|no) .{0,30}\bnow"
    rf"|(?:before|by|after|until|till) {_DAY}|before (?:i've|i have|i'm|i am|i get|i had|we've|we have|he|she|they"
    rf"|you've|you have)|a minute"
    r"|a moment|a sec(?:ond)?|just now|still (?:need|want|use|work)|(?:for|on|in|to) this one|this one|that one)\b"
)
_AT_ONCE = re.compile(r"\bnow\b(?! (?:on|and then)\b)")
_ONE_MESSAGE = re.compile(
    r"^(?:the|this|that|his|her|their) (?:[a-z]+ )?(?:e-?mail|file)\b(?! (?:account|address|tool|server|system|app"
    r"|client|format)s?\b)"
)
_AGAIN_UNTIL = re.compile(
    r"\b(?:until|till|'til|yet|today|tonight|for now|right now|for the moment|for the time being"
    r"|this (?:week|morning))\b"
)

# The same place or thing tomorrow as today: a demand about it holds for good.
_LASTING = alternatives(
    r"""
    prod|production|staging|main|master|live|release|databases?|db|servers?|browser|terminal|shell|console
    internet|web|network|api|calendar|inbox|mailbox|account|accounts|credit card|card|phone number|phone|number
    password|passwords|credentials|keys?|email|address|data|files?|folder|drive|repo|repository|root|tool|tools
    system|machine|laptop|cluster|archive|backups?|way|kind|sort|type|stuff|workspace|channel|customers?
    clients?|name|money|photos|contacts|signature|public|press|budget|team|colleagues|family|boss|manager|wife
    husband|kids|parents|mother|father|friends|home|office|company|night|private|personal|confidential|internal|public
    board|group|department|press|crm|erp|config|configuration|settings|firewall|router|host|site|website|queue|bucket
    list|ex|landlord|doctor|lawyer|neighbou?rs?|partner|bank
    """
)
_THIS_TASK = re.compile(
    rf"\b(?:for|in|on|with|during) this"
    rf" (?:customer|client|(?!(?:{_LASTING}|company|reason|project|house|server)\b)[a-z])"
)
_NOT_A_THING = alternatives(
    r"""
    is|was|are|were|would|will|means?|has|had|have|again|automatically|when|without|for|if|unless|on|by|at|in
    every|to|and|or|with|ever|anymore|any|happens?|way|i|you|we|he|she|they|it|my|our|your|the|kind|sort
    """
)
# "that" is a relative word more often than a pointing one; behind a preposition it points.
_THIS_THING = re.compile(
    rf"(?:\b(?:this|these|those)|\b(?:in|on|to|of|at|for|with|from|into|about) that)"
    rf"(?: (?:particular|specific|same|very|new|old|last|one|two))? (?!(?:{_LASTING}|{_NOT_A_THING})\b)[a-z]"
)
_FOR_THIS = re.compile(r"\b(?:for|on|with|about|in|to) (?:this|that)\b(?=\s*(?:[,.;!)]|$|now|yet|please))")
_ONE_BY_NUMBER = re.compile(
    r"\b(?:order|invoice|ticket|booking|reservation|pr|pull request|mr|issue|build|flight|payment|case|bug|item"
    r"|refund|job|commit|task|query"
    r"|transaction|shipment|parcel|request|version|release|meeting|doc|row|record|id|deployment|migration)s?(?![a-z])"
    r"\s*(?:no\.?|number|nr\.?|id)?\s*[#:]?\s*(?:[a-z]{0,4}[-_]?\d[\w./-]*|[a-z]+-\d[\w-]*)"
    r"|#\d+|\b[a-z]{1,5}-?\d{3,}\b(?!\.)|\b\d{2,}-\d{3,}\b|\bv\d+\.\d+(?:\.\d+)*\b"
)
_PERMITTED = re.compile(r"\byou(?:'re| are)? (?:can|may|free|allowed|welcome)\b")  # "edit files, but don't delete them"
_IN_ONE_TEXT = re.compile(
    r"\bin the (?:\w+ )?(?:e-?mail|mail|message|post|tweet|letter|ticket|report|document|announcement|text|reply|answer"
    r"|translation|draft|summary)\b"
)
_THAT_THING = re.compile(rf"(?:this|that|these|those) (?!(?:{_NOT_A_THING})\b)[a-z]")
_FILE_OBJECT = re.compile(r"^(?:the |my |our )?(?:file |folder )?(?!\.)[\w-]+(?:/[\w.-]+)*\.[a-z]\w{1,4}\b(?!/)")
_POINTED_AT = re.compile(
    r"^(?:to )?(?:it|them|him|her|this|that|these|those|mine|everything else|the (?:other|rest|first|second|third|last"
    r"|next|current|new|old))\b"
    r"(?! (?:again|automatically|ever|any ?more|on your own|by yourself|behind|without|when|whenever|if|for|way|kind"
    r"|sort|type|in the future))"
)
_POINTED_LATER = re.compile(r"\b(?:it|them|this one|that one)\b\s*(?:[,.!;]|$|to\b|now\b)")
_SUBORDINATE = re.compile(r"\b(?:unless|if|when|because|without|until|before|after|once|while)\b")
# What a task is about and is over with it.
_ONE_THING = (
    r"(?:order|invoice|bill|ticket|booking|reservation|flight|payment|refund|transfer|parcel|e-?mail|message|mail|letter"
    r"|draft|post|tweet|announcement|newsletter|file|document|report|contract|spreadsheet|script|command|query|migration"
    r"|release|build|deployment|meeting|event|appointment|call|branch|commit|page|link|article|claim|card|photo|picture"
    r"|slides?|summary|notes?|results?|survey|offer|quote|receipt|gift|present|surprise|news)(?![\w'-])"
    r"(?! (?:team|department|folder|files|list|group|channel|desk|office|provider|agency|company|owner|author))"
)
_ONE_AS_SUBJECT = re.compile(rf"\b(?:the|this|that|his|her|their) (?:[\w'-]+ ){{0,2}}?{_ONE_THING}")
_ONE_SENT = re.compile(rf"^(?:to |at )?(?:the|this|that|my|our|his|her|their) (?:[\w'-]+ ){{0,2}}?{_ONE_THING}")
_ONE_OF_MINE = re.compile(
    rf"^(?:the|my|our|his|her|their|that|this) (?!(?:[a-z]+ )?(?:{_LASTING})\b)(?:[a-z0-9'.-]+ "
    rf"){{0,2}}?[a-z0-9.-]*[a-z0-9]\b"
)
_PLURAL_OBJECT = re.compile(r"^(?:my|our|his|her|their) (?:[a-z-]+ ){0,2}?[a-z-]+[^s\W]s\b")
# With these the object is a person or a group, whoever that is: tomorrow as today.
_CONTACT = words_of(
    "email e-mail mail dm message call text contact ping cc bcc invite notify tell phone write reply answer ring "
    "disturb bother meet pester alert warn remind approach visit inform"
)
_ONE_LESS = re.compile(r"no\b")  # "no exchange, then"; "no emails" and "no posting" speak of a habit
_SEVERAL = re.compile(r"no (?:[\w-]+ ){0,2}?[\w-]+(?:[^s]s|ing)\b|.*\b(?:without|per|after|before|on|more)\b")
_UNSAID = re.compile(r"^\W*(?:(?:please|pls|ok|okay|thanks|thank you|thx|just|then|back)\W*)?$")
_EMPTY = re.compile(r"^[\W\d_]*(?:please|pls|ok|okay|thanks|thank you|thx|just|then)?\W*$")


def kind_of(strength: Strength, sentence: str, verb: str, start: int, after: int, end: int, subject: str = "") -> Kind:
    """ "standing" or "session".

    `sentence` is in small letters; the demand is `start`:`end`, its verb ends at `after`; `verb` is the verb; `subject`
    what a demand in the passive is about.
    """
    demand = sentence[start:end]
    rest = sentence[after:end].strip(" ,")
    if strength is Strength.NOW:
        return "session"
    if strength is Strength.VERY or _FOR_GOOD.search(sentence):
        return "standing"
    if _AGAIN.search(demand):
        return "session" if _AGAIN_UNTIL.search(sentence) else "standing"
    passing = _PASSING.search(sentence)
    if passing is not None and passing.start() > end and passing[0].endswith((" then", " now")):
        passing = None  # "no calls after six, they have gone home by then": a reason
    at_once = strength is not Strength.STOP and _AT_ONCE.search(demand)
    if passing is not None or at_once or _THIS_TASK.search(sentence):
        return "session"
    if _THIS_THING.search(subject) or _ONE_BY_NUMBER.search(subject) or _ONE_AS_SUBJECT.search(subject):
        return "session"
    if strength is Strength.STOP:
        return (
            "session"
            if (_THIS_THING.search(demand) or _THAT_THING.match(rest)) and "every" not in demand
            else "standing"
        )
    if (
        _ONE_BY_NUMBER.search(demand)
        or _THIS_THING.search(demand)
        or _FOR_THIS.search(demand)
        or _IN_ONE_TEXT.search(demand)
        or _POINTED_AT.match(rest)
        or _FILE_OBJECT.match(rest)
        or (strength is Strength.SOFT and _ONE_MESSAGE.match(rest))
    ):
        return "session"
    if strength is Strength.MUST:
        pointed = _POINTED_LATER.search(_SUBORDINATE.split(rest, maxsplit=1)[0])
        if pointed and not subject.strip() and not _PERMITTED.search(sentence[:start]):
            return "session"
        return "standing"
    if _ONE_LESS.match(demand) and not _SEVERAL.match(demand):
        return "session"
    if verb in _CONTACT and not _UNSAID.match(rest):
        return "session" if _ONE_SENT.match(rest) else "standing"
    if _EMPTY.match(rest) or (_ONE_OF_MINE.match(rest) and not _PLURAL_OBJECT.match(rest)):
        return "session"
    return "standing"
