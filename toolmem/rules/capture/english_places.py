"""Where in an English sentence a cue is addressed to the agent, and where the same words only tell of something."""

from __future__ import annotations

import re

from toolmem.rules.capture.english_words import alternatives

_BOUNDARY = re.compile(r",(?!\d{3}\b)|[;:()!?…\[\]]|\.{2,}|\s[-–—]+\s?|—|–|[.]\s")

# Words that may stand before an imperative.
_FILLERS = alternatives(
    r"""
    please|pls|plz|kindly|okay|ok|oh|and|but|so|also|then|just|hey|hi|hello|listen|look|again|now|well|yes|yeah
    no|nope|right|great|good|fine|thanks|thank you|sorry|wait|stop|whoa|careful|attention|important|note
    remember|reminder|btw|fyi|ps|however|therefore|one (?:more|last|other) thing|one thing|by the way
    for the record|as (?:i said|always|usual|discussed)|once more|first(?:ly)?|second(?:ly)?|third(?:ly)?
    actually|on second thoughts?|come to think of it|hmm?|ah|oops|anyway|anyways|alright|all right|cool|perfect|nice
    finally|lastly|last but not least|first of all|above all|most importantly|in particular|especially|instead
    otherwise|at least|effective immediately|meanwhile|in the meantime|until then|ever again
    from (?:now|here|today|this (?:day|point|moment|week)) (?:on|onwards?|forward)
    starting (?:now|today|tomorrow|immediately)|in (?:the )?future|going forward|moving forward|henceforth
    as of (?:now|today)|as a rule|in general|generally|for (?:now|the moment|the time being|today)|right now
    at the moment|today|tonight|tomorrow|this time|whatever happens|(?:what|which)ever you do|no matter what
    under any circumstances|seriously|honestly|really|absolutely|definitely|strictly|obviously
    i (?:repeat|insist|beg(?: of)? you|ask you|mean it)
    i (?:warn you|said|told you|mean|am serious|am begging you)
    i'm (?:begging you|serious|telling you|asking you)|would you|for the love of (?:god|all that is holy|\w+)
    to be (?:clear|honest)|for (?:god's|heaven's|goodness|my|pete's) sakes?|dear (?:agent|assistant|bot|ai)
    agent|assistant|bot|buddy|mate|dude|man|guys|folks|team
    (?:my |a |the )?(?:new |golden |house |general |standing )?(?:rule|request|wish)(?: (?:number )?(?:one|two|\d+))?
    is(?= never| no| not| don't)|policy|update|can you|could you|will you
    """
)
_FILLER = re.compile(rf"\s*(?:{_FILLERS})\b[\s\"'*_]*")

# Words that open an introduction: "when you send mail never ...", "on Sundays don't ...".
_INTRODUCTION = re.compile(
    r"(?:when(?:ever)?|after|before|while|once|unless|until|till|as long as|on|in|at|for|during|every time|each time"
    r"|without|with"
    r"|outside|inside|between|within|from|as|next time|except|where(?:ver)?|apart from|besides|given|regarding"
    r"|concerning|about"
    r"|since|because|if|in case)\b"
)
_POLITE_LEAD = re.compile(r"(?<=\w )(?:can|could|would|will) (?:you|u|ya)\s*(?:please\s*)?$")
_EXAMPLE = re.compile(r"(?:\be\.g\.|\b(?:for (?:example|instance)|such as|something like)),?\s*$")
_JOINT = re.compile(
    r"\b(?P<word>and|or|but|so|then|plus|nor)\s+(?:(?:please|also|then|just|again|instead|therefore|from now on|in "
    r"future) )*$"
)
_SUBJECT = re.compile(
    r"(?:i|we|he|she|it|they|you|there|that|this|these|those|my|our|his|her|their|the|a|an|some|people|who|someone"
    r"|somebody"
    r"|everybody|everyone|nobody|most|many|all|both|i'm|i've|i'd|we're|we've|it's|he's|she's|they're|that's|\d+)\b"
)
_PERSON_BEFORE = re.compile(
    r"\b(?:i|we|he|she|it|they|who|which|that|why|how come|people|to|can|could|may|might|must|will|would|do|does|did"
    r"|have|has|had|am|is|are|was|were|be|been)\s*$"
)
_ASKED_TO = re.compile(
    r"\b(?:i|we)(?:'d| would| really| do)* (?:want|need|like|love|prefer|ask|expect|beg|urge|order|advise)(?: for)? "
    r"you (?:all )?(?:please )?to\s*$"
    r"|\byou (?:really |absolutely |simply )?(?:must|should|shall|have to|need to|ought to|are to|will have to)"
    r" (?:please |really |just |also |immediately )*$"
    r"|\b(?:if|that) you(?:'d| would| could|'ll| can)? (?:please |just |finally |kindly )*$"
    r"|\b(?:can|could|would|will) you (?:please |kindly |just |finally )*$"
    r"|\bplease(?: just| kindly| also)?\s*$|\b(?:i'm|i am) (?:asking|telling|begging) you to\s*$"
)
_TOLD = re.compile(
    r"\b(?:say|says|said|state[sd]?|reads?|claim(?:s|ed)?|told|tells?|wrote|hear|heard|thought|think|thinks|true"
    r"|believe|know|knew"
    r"|learned|learnt|mean|means|meant|recommend(?:s|ed)?|advise[sd]?|why|when|if|whether|who|which|where|how|what"
    r"|that|than|as"
    r"|sure)(?: that)?\s*$"
)
# What I said or we agreed holds, though it is told: "we agreed that you don't ...".
_OWN_SAYING = re.compile(
    r"\b(?:i|we)(?:'ve| have|'d| had)?(?: already| clearly| just)? (?:agreed|decided|settled|said|insist|repeat"
    r"|told you"
    r"|made (?:it )?clear)(?: that)?\s*$|^\W*(?:(?:please|and|but|so|also|just) )*(?:remember|note|keep in mind"
    r"|bear in mind|be aware"
    r"|understand|don't forget)(?: that)?\s*$"
)
# Where everybody is meant by "you".
_BY_LAW = re.compile(
    r"^\W*(?:(?:and|but|so|because) )?(?:according to|by law|legally|under (?:the )?(?:\w+ )?(?:law|gdpr|hipaa"
    r"|contract)"
    r"|in (?:most|many|some|other|theory|general terms|(?:the )?(?:us|usa|uk|eu|states|europe|germany|france|spain"
    r"|italy|england"
    r"|britain|america|canada|china|japan|india|australia|switzerland|austria)|(?:my|his|her|their|our) (?:old|last"
    r"|previous"
    r"|former) \w+))\b"
)
_LASTING = re.compile(
    r"\b(?:from (?:now|today) on|in (?:the )?future|going forward|henceforth|without|unless|until (?:i|we|my)|ever"
    r"|again|always|any ?more|tonight|today)\b"
)
_TOPIC = re.compile(r"(?:as (?:far as|for|to) |about |regarding |re )?(?:[a-z_'/-]+ ){0,4}[a-z_'/-]+(?: go(?:es)?)?")
_RULE_FOR_OTHERS = re.compile(
    r"\bfor (?:the |our |my |all |new )*(?:interns?|staff|employees?|students?|pupils?|kids?|child(?:ren)?|drivers?"
    r"|volunteers?|trainees?|developers?|engineers?|nurses?|players?|tenants?|members?|everyone|everybody)\b"
)
_NOT_OWN = re.compile(
    r"\b(?:says?|said|whether|if|why|when|how|because|believe|think|know|wonder)\b|\b(?:who|which|that|he|she|they|i"
    r"|we)\s*$"
)

# Before a colon: what follows is what somebody else says, or what the agent is to write.
_SHOWN = re.compile(
    r"\b(?:says?|said|reads?|states?|stated|tells?|wrote|writes|prints?|printed|shows?|shouts?|warns?|claims?"
    r"|answered|replied"
    r"|translat\w+|writing|sentences?|phrases?|titled?|subject|caption|headline|slogan|lyrics|quot(?:e|ed|ing)|best "
    r"practices?|proverb|yelled|shouted|screamed|whispered|error|warning|logs?"
    r"|output|sign|poster|banner|texts?|messages?|comment|docstring|prompt|called|named|manual|example"
    r"|search for|grep"
    r"|regex|paraphrase|proofread|rewrite|correct|poem|story|joke|song|footer|signature|description|readme|email"
    r"|mail|letter)\b|^\W*(?:(?:and|but|so|then|well),? )?(?:he|she|they)(?: \w+){1,2}$"
)
_OWN_WORDS = re.compile(
    r"\b(?:i|we)(?:'ll| will| must| have to| forgot to| want to| need to| wanted to)?"
    r" (?:said|say|wrote|told|tell|repeat|mean)\b|^(?:please )?(?:note"
    r"|remember|warning)\b"
)
_TASK = re.compile(
    r"^\W*(?:(?:please|now|ok|okay|then|and|also|hi|hey|can you|could you|next),?\s+)*(?:write|add|post|send|reply"
    r"|answer|tell|say"
    r"|print|type|put|append|insert|set|change|rename|replace|search|find|look|draft|create|make|publish|tweet"
    r"|announce|e-?mail|mail"
    r"|dm|text|remind|ask|explain|summari[sz]e|continue|complete|fix|read|compare|finish|include|mention|respond"
    r"|forward|store|save"
    r"|record|translate|remove|delete|list|let (?:him|her|them|everyone|everybody|the team)) "
)
_REPORT = re.compile(
    r"^\W*(?:the|this|that|his|her|its|my|our|their) (?:[\w.-]+ ){0,3}?(?:manual|page|sign|docs?|documentation"
    r"|readme|policy|site"
    r"|email|mail|message|label|warning|error|log|book|article|post|tweet|letter|poster|license|licence|terms"
    r"|contract|screen|banner)"
    r"\b.{0,40}?\b(?:says?|said|reads?|states?|told|tells|warns?|claims?)\b"
)


def at_start(text: str, position: int) -> bool:
    """Does an imperative begin here: at the start of a clause, after fillers or an introduction?"""
    clause = _POLITE_LEAD.sub("", _BOUNDARY.split(text[:position])[-1])
    rest = _without_fillers(clause)
    if not rest:
        return True
    if _PERSON_BEFORE.search(clause):
        return False
    if _INTRODUCTION.match(rest) and len(rest) < 90:
        return True
    joint = _JOINT.search(clause)
    if joint is None:
        return False
    # "He drinks and never eats" has one subject for both verbs; "save it and never open it" has none.
    return (
        joint["word"] in ("but", "so")
        or "please" in joint[0]
        or not _SUBJECT.match(_without_fillers(clause[: joint.start()]))
    )


def opens_sentence(text: str, position: int) -> bool:
    """As `at_start`; not where a statement goes before: "nothing came, no e-mail, no call"."""
    if not at_start(text, position):
        return False
    head = text[:position]
    before = [_without_fillers(part) for part in _BOUNDARY.split(head)]
    return (
        not any(_TELLS.search(part) for part in before[:-1])
        or bool(re.search(r"(?:\b(?:so|please|and|therefore|hence|then)|[:;.])\s*$", head))
        or bool(re.search(r"\b(?:please|until|without|ever|anymore|any more|from now on)\b", text[position:]))
    )


_TELLS = re.compile(r"\b(?:nothing|nobody|no|never|not|was|were|had|came|got|\w{2,}ed|doesn't|didn't)\b")


def asked(text: str, position: int) -> bool:
    """As `at_start`, or after "I want you to", "you should", "if you'd"."""
    return at_start(text, position) or (bool(_ASKED_TO.search(text[:position])) and not is_told(text, position))


def is_told(text: str, position: int) -> bool:
    """ "The manual says you must not ...": somebody else's demand, or a subordinate clause."""
    clause = _BOUNDARY.split(text[:position])[-1]
    if _OWN_SAYING.search(clause):
        return False
    return bool(_TOLD.search(clause) or _REPORT.match(text[:position]) or _BY_LAW.match(clause))


def for_good(text: str, position: int) -> bool:
    """As `at_start`, in a sentence that says for how long, or under which condition only."""
    return at_start(text, position) and bool(_LASTING.search(text))


def after_topic(text: str, position: int) -> bool:
    """ "Payments: only on Mondays": behind a few words that open the sentence."""
    lead = _without_fillers(text[:position])
    return bool(_TOPIC.fullmatch(lead)) and not opens_shown_text(lead)


def not_told(text: str, position: int) -> bool:
    return not is_told(text, position)


def own_subject(text: str, position: int) -> bool:
    """ "Invoices must never be paid": the subject is neither a relative clause nor the object of a task."""
    clause = _BOUNDARY.split(text[:position])[-1]
    return not (_NOT_OWN.search(clause) or _TASK.match(clause) or _REPORT.match(text[:position]))


def clause_start(text: str, position: int) -> int:
    """Where the clause begins that `position` stands in."""
    return position - len(_BOUNDARY.split(text[:position])[-1])


def anywhere(text: str, position: int) -> bool:
    return True


def shown_after_colon(text: str, position: int) -> bool:
    """Is this behind a colon that opens a text to be written, or somebody else's words; or an example of such?"""
    if _EXAMPLE.search(text[:position]):
        return True
    colons = re.finditer(r":(?=\s|$)", text[:position])
    return any(opens_shown_text(text[: colon.start()]) for colon in colons)


def opens_shown_text(lead: str) -> bool:
    """`lead` stands before a colon."""
    if _RULE_FOR_OTHERS.search(lead):
        return True
    return bool((_SHOWN.search(lead) or _TASK.match(lead)) and not _OWN_WORDS.search(lead))


def _without_fillers(clause: str) -> str:
    while (match := _FILLER.match(clause)) is not None and match[0].strip():
        clause = clause[match.end() :]
    return clause.strip(" \"'*_")
