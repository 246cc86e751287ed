"""The forms in which an English sentence forbids something."""

from __future__ import annotations

from toolmem.rules.capture.english_cue import ADVERBS, DO_NOT, ING, NOT, PASSIVE, VERB, Cue, any_of, cue
from toolmem.rules.capture.english_duration import Strength
from toolmem.rules.capture.english_places import anywhere, asked, at_start, not_told, opens_sentence, own_subject
from toolmem.rules.capture.english_words import alternatives

_TO_YOU = any_of(
    r"make sure",
    r"ensure",
    r"be sure",
    r"see to it",
    r"remember",
    r"take care",
    r"be careful",
    r"be so (?:kind|good) as",
    r"promise(?: me)?",
    r"(?:let's|can we|could we|shall we)(?: please)? agree(?: that)?",
    r"(?:my|our|the|one) (?:\w+ )?(?:preference|wish|request|rule|condition|deal|policy) is(?: that| for)?",
    r"make it (?:a|your) (?:habit|rule|point|practice|principle)",
    r"it(?:'s| is) (?:\w+ )?(?:important|essential|vital|crucial|critical|imperative)(?: to me| for me| for us)? that",
    r"you(?:'re| are| have been|'ve been) (?:hereby |strictly |kindly )*(?:instructed|told|requested|asked|advised"
    r"|expected|ordered|required|urged)",
    r"i(?:'d| would| really| must| have to| may| am| 'm| had| did|'m)* (?:need|want|expect|ask|asking|order|like|beg"
    r"|begging|urge|tell|telling|told"
    r"|asked|advise|instruct)(?: for)? you",
    r"you(?:'re| are| have|'ve got)",
)
_STOP = r"(?:stop|quit|cease|refrain from|abstain from|desist from|knock off|enough with|enough of|stop with)"
_KEEP_OFF = any_of(
    r"refrain from",
    r"abstain from",
    r"desist from",
    r"stop with",
    r"stop (?:all|any)",
    r"enough (?:of|with)",
    r"steer clear of",
    r"(?:keep |your )?hands off",
    r"lay off",
    r"cut (?:it )?out (?:with )?",
    r"(?:stay|keep|remain) (?:out of|off|away from|clear of)",
    r"keep (?:your|ur) (?:[a-z]+ )?(?:hands|fingers|paws|claws|mitts|nose) (?:off|away from|out of)",
)
_NO_BUT = alternatives(
    r"""
    more|problem|rush|worr\w+|need|thanks?|idea|clue|wonder|way|doubt|one|matter|longer|big|hurry|chance|luck
    offen[cs]e|time|reason|point|hard|it|i|we|he|she|they|that|this|the|you|not|never|don't|do|please|and|but
    so|just|is|was|pressure|biggie|sir|can|if|there|later|earlier|results?|errors?|answer|reply|news|progress
    difference|access
    """
)
_FORBIDDEN = any_of(
    r"off[- ]limits",
    r"out of bounds",
    r"out of the question",
    r"off the table",
    r"(?:strictly |absolutely |completely |totally )?(?:forbidden|prohibited|banned|taboo|verboten|unacceptable|not "
    r"acceptable)",
    r"(?:strictly |absolutely |definitely )?(?:not|never) (?:allowed|permitted|acceptable|okay|ok|an option|to be "
    r"touched|your (?:job|business))(?! to\b)",
    r"none of your business",
    r"a (?:complete |total |absolute |big |hard )?no[- ]?go",
    r"no[- ]?gos?",
    r"against (?:the |our |my |company )(?:rules|policy|law)",
    r"not something (?:you (?:should|may|can|do|are allowed)|(?:i|we) (?:want|like|appreciate|allow|tolerate|accept))",
)

PROHIBITIONS: tuple[Cue, ...] = (
    # "Don't ever send", "never send", "don't send"
    cue(
        Strength.VERY,
        at_start,
        r"\b",
        DO_NOT,
        r"(?: you| u)? (?:ever|dare(?: to)?),?\s+",
        ADVERBS,
        VERB,
        base_verb=True,
    ),
    cue(Strength.VERY, at_start, r"\bnever\b(?:[,\s]+(?:ever|again))*,?\s+", ADVERBS, VERB, base_verb=True),
    cue(Strength.SOFT, at_start, r"\b", DO_NOT, r",?\s+", ADVERBS, VERB, base_verb=True),
    cue(
        Strength.SOFT,
        at_start,
        r"\b(?:please|kindly|better|you better|you'd better|you had better|try|please try) not (?:to )?",
        ADVERBS,
        VERB,
        base_verb=True,
    ),
    cue(Strength.STOP, at_start, r"\bno longer ", ADVERBS, VERB, base_verb=True, acting=True),
    cue(
        Strength.VERY,
        at_start,
        r"\b(?:under no (?:circumstances?|conditions?)|on no account|in no case|at no (?:time|point)|by no means)\b,?"
        r"(?: (?:should|may|must|can|shall|are|do|will) you(?: ever| to)?)? ",
        ADVERBS,
        VERB,
        base_verb=True,
    ),
    cue(
        Strength.VERY,
        at_start,
        r"\bnever(?: again| ever)* (?:will|should|shall|may|must|can|are) you(?: ever| to)? ",
        VERB,
        base_verb=True,
    ),
    cue(
        Strength.MUST,
        at_start,
        r"\b(?:the )?(?:agents?|bots?|assistants?|ai|llms?|models?|chatbots?) (?:must|should|may|shall|is to|are to) ",
        NOT,
        r" (?:ever )?",
        ADVERBS,
        VERB,
        base_verb=True,
        needs_tool=True,
    ),
    cue(Strength.SOFT, at_start, r"\blet(?:'s| us) (?:not|never) ", ADVERBS, VERB, base_verb=True),
    cue(
        Strength.NOW,
        at_start,
        r"\b(?:hold off|hold|wait|hang on)\b(?: on| with| the| that| this| my| all| any)+ ",
        needs_tool=True,
    ),
    cue(Strength.NOW, at_start, r"\blet(?:'s| us) (?:hold off|wait)\b", needs_tool=True),
    cue(
        Strength.MUST,
        not_told,
        r"\b",
        _TO_YOU,
        r" (?:that )?(?:you )?"
        r"(?:to never|never to|not to|to not|never|don't|do not|won't|will not) (?:ever )?",
        ADVERBS,
        VERB,
        base_verb=True,
    ),
    cue(
        Strength.VERY,
        not_told,
        r"\byou (?:do not|don't|never) ",
        VERB,
        r"(?=.*\b(?:without|unless|ever|period|again)\b)",
        base_verb=True,
        needs_tool=True,
    ),
    # "Stop sending", "avoid sending", "no more e-mails"
    cue(
        Strength.STOP,
        asked,
        r"\b(?:",
        _STOP,
        r"|no more)"
        r"(?: (?:all|any|the|with|your|this|that|constantly|always|just|automatically|even|constant|endless))*,? ",
        ING,
    ),
    cue(Strength.STOP, asked, r"\b", _KEEP_OFF, r"\b", needs_tool=True),
    cue(Strength.MUST, asked, r"\bavoid (?:\w+ly )?", ING),
    cue(Strength.MUST, asked, r"\bavoid\b", needs_tool=True),
    cue(Strength.MUST, not_told, r"\byou(?:'re| are) (?:not|never) to (?:ever )?", ADVERBS, VERB, base_verb=True),
    cue(Strength.MUST, asked, r"\bleave (?:my|our|all|the|any)\b.{1,60}?\balone\b", needs_tool=True),
    cue(Strength.STOP, at_start, r"\b(?:i want |we want )?no more\b(?! than)", needs_tool=True),
    cue(
        Strength.SOFT,
        opens_sentence,
        rf"\b(?:no|zero|not (?:a|one) single)\b(?! (?:{_NO_BUT})\b)(?= \w)(?!(?: [\w-]+){{1,3}} (?:arrived?|works?"
        rf"|worked|loads?|opens?|shows?|appears?|came"
        rf"|come|comes|was|were|has|have|had|found|happened|left|so far|did|does|could|would|is)\b)",
        needs_tool=True,
    ),
    cue(
        Strength.STOP,
        own_subject,
        r"\b(?:has|have|needs?|had better|must|ought|got)(?: got)?(?: to)? (?:stop|end|cease)\b",
        needs_tool=True,
    ),
    cue(Strength.STOP, anywhere, r"\b(?:is|was|be) the last time (?:that )?you\b", needs_tool=True),
    # "You must not send", "you are not allowed to send", "it is not okay to send"
    cue(
        Strength.MUST,
        not_told,
        r"\byou(?: really| absolutely| simply| definitely| also| all)? (?:(?:must|should|shall|may|might|ought)"
        r"(?: really| absolutely| definitely)? ",
        NOT,
        r"|mustn't|shouldn't|shan't|mustnt|shouldnt)"
        r" (?:ever )?(?:to )?",
        ADVERBS,
        VERB,
        base_verb=True,
    ),
    cue(Strength.VERY, not_told, r"\byou (?:will|shall) never ", ADVERBS, VERB, base_verb=True, needs_tool=True),
    cue(
        Strength.MUST,
        not_told,
        r"\byou (?:will not|won't) ",
        ADVERBS,
        VERB,
        r"(?=.*\b(?:without|unless|ever)\b)",
        base_verb=True,
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        not_told,
        r"\byou(?:'re| are| aren't| have|'ve)? (?:not|never|no longer|no)?(?: \w+ly)? ?(?<=n't |not |ver |ger | no )"
        r"(?:allowed|permitted|supposed|authori[sz]ed|entitled|cleared|meant|permission|business|right"
        r"|authority)(?: to)? (?:ever )?",
        ADVERBS,
        VERB,
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        not_told,
        r"\byou(?:'re| are) (?:strictly |hereby )?(?:forbidden|prohibited|banned) (?:to|from) ",
        VERB,
    ),
    cue(
        Strength.MUST,
        not_told,
        r"\byou (?:can't|cannot|can not|cant|couldn't|could not) ",
        ADVERBS,
        VERB,
        r"(?=.*\b(?:without (?:my|me|our|us|ask|tell|check|consult|permission|approval|first|prior)|unless|except"
        r"|any ?more|ever|under any"
        r"|from now on)\b)",
        base_verb=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:it(?:'s| is)|that's|that is) (?:not|never|no longer)"
        r" (?:okay|ok|acceptable|fine|your (?:job|place)|up to you|appropriate|alright|all right)(?: for you)? to "
        r"(?:ever )?",
        VERB,
        base_verb=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:it(?:'s| is)) (?:not allowed|not permitted|never allowed|no longer allowed|(?:strictly )?forbidden"
        r"|prohibited)(?: for you)? to ",
        VERB,
        base_verb=True,
        needs_tool=True,
    ),
    # Things that must not be done: "invoices must never be paid twice", "that must not happen again"
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:must|should|may|shall|are|is|ought|can)(?: absolutely| strictly| really)?"
        r" (?:not|never|no longer|only)(?: ever)? (?:to )?",
        PASSIVE,
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:is|are|stays?|remains?|'s|'re|considered?|treat .{1,40} as)(?: now| always| also)? ",
        _FORBIDDEN,
        needs_tool=True,
    ),
    cue(
        Strength.MUST,
        own_subject,
        r"\b(?:isn't|aren't) (?:allowed|permitted|acceptable|okay|ok|an option)\b",
        needs_tool=True,
    ),
    cue(Strength.MUST, at_start, r"\bconsider (?:my|our|the|all|any)\b.{1,40}?", _FORBIDDEN, needs_tool=True),
    cue(
        Strength.VERY,
        not_told,
        r"\b(?:that|this|it|such (?:a thing|things)|something like (?:that|this)|things like (?:that|this))"
        r" (?:must|should|may|can|shall|is|are|had better) (?:never|not) (?:ever )?(?:to )?(?:happen|occur|be "
        r"repeated|be done)\b",
    ),
    cue(
        Strength.VERY,
        own_subject,
        r"\b(?:nothing|nobody|no one|no \w+) (?:gets?|is|are|goes|leaves|should|may|must|can)\b.{0,80}?"
        r"\b(?:without|unless|until|before) (?:my|our|i|me|we|asking|checking)\b",
        needs_tool=True,
    ),
)
