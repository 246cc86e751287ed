"""Words that decide how an English demand is read."""

from __future__ import annotations


def alternatives(block: str) -> str:
    """One pattern of alternatives, written over several lines."""
    return "|".join(line.strip() for line in block.strip().splitlines())


def words_of(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# What an agent can do to the world: with one of these a demand is about acting, even where no tool is named.
ACTION_VERBS = words_of(
    """
    accept access act activate add alter amend announce answer append apply approve archive arrange ask assign
    attach authorize authorise automate backup ban bill block book browse build bump buy call cancel change
    charge chat check clean clear click clone close commit compile configure connect contact copy create debit
    delegate delete deploy disable disclose discard dispatch distribute do donate download drop dump edit email
    enable encrypt enter erase escalate exceed execute export expose fetch file fill finalize flush force
    forward generate give go google grant hand handle hire import initiate insert install invite invoke issue
    join keep kill launch leak leave lend link list load lock log login lookup mail make merge mess message
    migrate modify mount move notify open operate order overwrite pay perform phone ping place post print
    proceed process prune publish pull purchase purge push put query read reassign reboot rebase rebuild record
    redeploy redirect refund register reject release remove rename renew reply report request reschedule reset
    respond restart restore resubmit retry reveal revert revoke rewrite rm rotate run save scan schedule scrape
    search sell send set share ship shut sign skip spend squash ssh start stop store submit subscribe switch sync
    tag take tamper test text ticket touch track trade train transfer translate trigger truncate try tweet undo
    uninstall unlock unsubscribe update upgrade upload use utilize view visit wipe withdraw write
    """
)

# What "sent" and the like are forms of; regular endings are taken off by rule.
IRREGULAR = {
    "sent": "send",
    "paid": "pay",
    "written": "write",
    "overwritten": "overwrite",
    "rewritten": "rewrite",
    "made": "make",
    "done": "do",
    "given": "give",
    "gone": "go",
    "taken": "take",
    "bought": "buy",
    "sold": "sell",
    "spent": "spend",
    "lent": "lend",
    "left": "leave",
    "kept": "keep",
    "withdrawn": "withdraw",
    "undone": "undo",
    "ran": "run",
    "wrote": "write",
    "gave": "give",
    "took": "take",
    "hidden": "hide",
    "shown": "show",
    "built": "build",
    "rebuilt": "rebuild",
    "drawn": "draw",
    "held": "hold",
    "told": "tell",
    "chosen": "choose",
}

# "Don't worry", "never mind": not about what the agent does with its tools.
IDLE_VERBS = words_of(
    """
    abandon afford appreciate assume be been being believe blame bother break care come complain count cry
    despair die disappoint dream eat exist expect explain fail fall fear feel fight fly forget freak fret gain
    get give-up go-away got had has hate have hesitate hold-back hope hurry imagine joke judge kid know laugh
    lie like listen live look lose love mean mention mess-up mind miss need nag neglect object overthink panic
    pretend quit quote realize recall regret remember say see seem shout sleep smile stress suppose swear sweat
    talk tell think trust underestimate understand wait wake want was waste were wish wonder work worry yell
    argue interrupt apologize apologise rush lecture preach flatter flirt patronize sugarcoat
    """
)

# Never a base verb after "don't" or "never".
NOT_VERBS = words_of(
    """
    three four five six seven eight nine ten eleven twelve hundred thousand first second third half few several
    a an the this that these those i you he she it we they my your his her its our their me him us them who
    which what when where why how if and or but so to of in on at by for from with without within about into
    over under again ever never not no yes is are am was were been being had has having does did done will would
    shall should can could may might must as than too very much more most less least enough any some all both
    each every even yet still once since seen known heard better worse gonna wanna gotta one two in-between
    before after during until while there here
    """
)

# How the answer is written. A demand about it is none of ours, unless it names a tool.
STYLE = alternatives(
    r"""
    emojis?|emoticons?|smil(?:ey|ies)|bullets?|bullet[- ]points?|tables?|markdown|bold|italics?
    head(?:ing|er)s?|all caps|caps|uppercase|lowercase|capital letters?|exclamation (?:marks?|points?)
    em[- ]?dash(?:es)?|semicolons?|jargon|slang|tone|formal(?:ly)?|informal(?:ly)?|polite(?:ly)?|verbose|wordy
    concise(?:ly)?|brief(?:ly)?|short(?:er)?|long(?:er)?[- ]winded|paragraphs?|words?|sentences?|phrases?
    answers?(?! (?:my|our|his|her|their|any|the (?:customer|client|press|phone|door))s?\b)|answering
    repl(?:y|ies|ying) in|respond(?:ing)?|responses?|summar(?:y|ies|ize|ise)|explanations?
    disclaimers?|apologi[sz](?:e|es|ing)|apolog(?:y|ies)|sorry|jokes?|sarcas(?:m|tic)|puns?|metaphors?
    acronyms?|abbreviations?|footnotes?|greetings?|call(?:ing)? me|address(?:ing)? me|greet(?:ing)?
    thank(?:ing)? me|prais(?:e|ing)|repeat(?:ing)? (?:yourself|me|my)|speak(?:ing)?|talk(?:ing)?|metric
    imperial|fahrenheit|celsius|plain text|code blocks?|numbered lists?|lists|intro(?:duction)?s?|filler
    buzzwords?
    (?:in|into) (?:english|german|french|spanish|italian|chinese|japanese|dutch|russian|british english)
    """
)

# Manner towards the user: ask, tell, make or let me ... is talk, not a tool.
MANNER_AFTER = (
    r"(?:me|myself|us|yourself|so|that much|such|too|like that|at me|with me|to me|up|down|over it|it personally)\b"
)
