"""Find the rule that a plain sentence of the user takes back.

`lifted` finds the one rule that a sentence surely means. Such a sentence permits or drops
something, names what the rule forbids, and names nothing else. `possibly_lifted` and `may_mean`
find a rule that a sentence may mean; the user decides. A sentence that asks, reports, forbids, sets
a condition or permits something for a while takes nothing back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.changes import NOTED
from toolmem.rules.reader.own_text import MAX_SENTENCE, Sentence, own_sentences
from toolmem.rules.reader.words import (
    ACTIONS,
    CJK,
    FILLERS,
    NOUNS,
    PROGRAMS,
    SPOKEN,
    VERBS,
    lower,
    stems,
)
from toolmem.text.forms import spaced, word_set
from toolmem.view.parameters import scalars

_LEAD = (
    r"^\W*(?:(?:ok(?:ay)?|actually|hi|thanks|fine|all ?right|yes|so|well|good news|from now on"
    r"|please|and|also|i(?:'ve| have) changed my mind|we made up)\b\W*)*"
)
_FINE = r"(?:fine|ok(?:ay)?|all ?right|allowed|permitted)"
_RULE = r"(?:rules?|bans?|limits?|restrictions?|prohibitions?)"
_DROP = (
    r"(?:forget|scrap|drop|lift|lifting|cancel|disregard|ignore|remove|delete|withdraw|take back"
    r"|undo|revoke|never ?mind)"
)
_OVER = (
    r"(?:(?:is|are|has been|have been)(?: now| hereby)? (?:lifted|gone|over|off|void|dropped"
    r"|withdrawn|revoked|cancell?ed)|no longer (?:appl(?:y|ies)|holds?|counts?|stands?|is valid)"
    r"|(?:does not|doesn't|do not|don't) (?:apply|hold|count|stand) any ?(?:more|longer))"
)
_MAY = r"you(?:'re| are)?(?: now)? (?:may|can|(?:allowed|free|welcome) to)\b"
# The groups hold what is permitted.
_PERMISSION = re.compile(
    rf"{_LEAD}(?:{_MAY}(.*)|feel free to (.*)|go back to (.*)"
    rf"|(?:it|that)(?:'s| is)(?: now)? {_FINE}(?: again| now)? to (.*)"
    r"|(?:no need to|you (?:don't (?:have|need) to|no longer (?:have|need) to)|stop) "
    r"(?P<asking>ask(?:ing)?\b.*)"
    r"|(the [^,;:]*) (?:may|can)(?: now| again)? (?:get|receive)\b(.*)"
    r"|(?!(?:the|this|that|these|those|it|she|he|they|we|you|my|our|your)\b)(?:"
    rf"([^,;:]*) (?:is|are)(?: now)? (?:(?:allowed|permitted)|(?P<state>{_FINE}))\b(.*)"
    r"|([^,;:]*) (?:may|can)(?: now| again)? ((?:be|get|receive|go|happen|take place)\b.*)"
    r"|(?P<order>[a-z].*)))"
)
# The groups hold which rule is meant.
_REFERENCE = re.compile(
    rf"{_LEAD}(?:i (?:hereby )?)?(?:{_DROP} ((?:my|the|that|your|our|\w+'s)\b.*\b{_RULE}\b.*)"
    rf"|((?:the|my|your|that)\b.*\b{_RULE}\b.*?) {_OVER}\b(.*))"
)
_ZH_LEAD = r"^\W*(?:(?:好的?|行|我改主意了|以后|现在|从现在起|今后|从今以后|你|又|也|就)[,，\s]*)*"
_ZH_PERMISSION = re.compile(
    rf"{_ZH_LEAD}(?:(?:可以|能|允许你?)(.*)|(?P<subject>[^,，。可能]+)(?:可以|能)(.*了\W*$)"
    r"|(.*)(?:不用|不必|不需要)(?:再|每次|先)*(?P<asking>问.*))"
)
_ZH_REFERENCE = re.compile(
    rf"{_ZH_LEAD}(?:(?:取消|忘掉|忘记|撤销|解除|作废|收回)(.*(?:规定|规则|限制|禁令).*)"
    r"|(.*(?:规定|规则|限制|禁令))(?:已经?|现在|都)?(?:取消|解除|作废|撤销|失效|不再有效)了?\W*$)"
)
_ZH_SENDS = re.compile(r"^(?!.*[给向对收被在往]).*(?:发|寄|联系|付|汇|转|打款)")  # no receiver
# The permission holds for good.
_FOR_GOOD = re.compile(
    r"\b(?:again|from now on|any ?more|no longer|any longer|whenever|stop asking|no need)\b"
    r"|以后|今后|从现在|又|了\W*$|再|恢复"
)
# The sentence asks, reports, wishes, forbids, excepts, sets a condition, or permits for a while.
_DOUBTFUL = re.compile(
    r"^\W*(?:can|could|may|am|is|are|do|does|did|who|what|why|how|when)\b|\?"
    r"|\b(?:if|unless|when(?!ever)|once|as (?:soon|long) as|provided|in case|whether|until|till"
    r"|while|suppos\w+|assum\w+|imagine|pretend|let's say|says?|(?<!\bi )(?:said|told)|tells?"
    r"|wrote|writes|claim\w*|according|hear[ds]?|reads|reported|apparently|allegedly|thinks?"
    r"|thought|believes?|announced|asks|asked|mentioned|rumou?rs?|wish|hope|want|would|could"
    r"|should|must|might|maybe|perhaps|probably|just|only|for (?:now|once|a|an|one|two|the|this"
    r"|\d+)|one time|this (?!is|was|rule|ban)\w+|temporarily|except|but|apart from|other than"
    r"|however|though|although|still|stays?|remains?|cannot|never(?! ?mind)|nobody|none|no one"
    r"|(?:not|\w*n't)(?! (?:apply|hold|count|stand) any| (?:have|need) to ask)|nothing|neither|nor"
    r"|no(?! longer| need)|hardly|scarcely|barely|rarely|seldom|forbid\w*|avoid|stop(?! ask)"
    r"|nicht(?! mehr)|kein\w*|nie|wenn)\b"
    r"|\b(?:can|may|must|to|you|do|does|will) no longer (?!(?:have|need) to)"
    r"|no longer (?:can|may|welcome|possible|(?:allowed|permitted|free|fine|ok(?:ay)?)\b)"
    r"|如果|只|等|但|(?<!解)除[了非]|的时候|这次|这一次|就这|暂时|说|也许|可能|[吗?？]|没人|没有|谁|难道"
    r"|(?<!数)据(?!库)|要是|假如|当|是否|是不是|能不能|不可以|不能|不许|不要|不准"
    r"|(?<![特级个])别|希望|应该|翻译|告诉|好像|(?<!刚)才|不再?(?:可以|能|允许)"
)
# A sentence that makes the whole message doubtful: a joke, an exception, a condition.
_NOT_MEANT = re.compile(
    r"^\W*(?:but|except|only|not|never(?! ?mind)|unless|however|just|though|no|nope|if|when|until"
    r"|as (?:long|soon)|provided|once|wait|scratch)\b|^\W*(?:但|除|只|不(?!用|必|需)|别|如果|等)"
    r"|\b(?:kidding|jok\w+|suppose|imagine|pretend|what if|says|(?<!\bi )said|wrote|claims|lol"
    r"|ha(?:ha)+|as if|yeah|fired)\b|;-?\)|/s\W*$|^\W*(?:sure|great|of course),|开玩笑"
)
# A sentence that makes its neighbours doubtful: it announces a text, names a speaker, sets a limit.
_SPOILS_NEIGHBOURS = re.compile(
    r"\b(?:texts?|messages?|signs?|banner|title|subject|repl(?:y|ies)|answers?|quot\w+|words?"
    r"|ideas?"
    r"|lines?|sentences?|follows?|following|told|draft|translat\w+|notes?|rules?|readme)\b"
    r"|^\W*(?:after|before|today|tonight|tomorrow|for|on|in|by|at|from|ask|that|this|these)\b"
    r"|文字|消息|标题|回复|翻译|^\W*(?:今天|明天|之后)"
)
# Limits of a permission; the rule has to have the same.
_LIMIT = re.compile(
    r"\b(?:before|after|without|during|(?<!is )(?<!are )over|under|above|below|today|tonight"
    r"|tomorrow|\w+days?(?!')|at night|weekends?)\b|(?<=[点号日月天时])(?:以前|以后|之后|前|后)"
    r"|之前|超过|以上|以下|低于|周.|星期.|今[天晚]|明天"
)
_REASON = re.compile(
    r"[,;] (?:(?:because|since|now that) )?(?:(?:i|we)(?='ve| have)|she|he|they|the|our|my)\b"
    r"(?: [\w-]+){0,4}?(?:'s|'ve| is| are| has| have| was| signed| agreed| approved)\b"
    r"(?!.*\b(?:\w+days?|rest|deadline|up to)\b).*$|[，,](?:因为|她|他|这).*$",
    re.I,
)
# Words with which people take something back, in sentences of any form.
_MAY_LIFT = re.compile(
    rf"(?:^|[,;] ?(?:and |so )?|\bso ){_MAY}.*\b(?:again|now|from now on|any ?time)\b|feel free to"
    rf"|\b(?:is|are)(?: now)? {_FINE} (?:again|now|from now on)"
    rf"|\b(?:may|can) (?:be|get|receive)\b.* again\b|\b{_RULE}\b.*\b{_OVER}\b"
    r"|\bis (?:history|obsolete|settled|dead|over|off|back|open)\b(?: \w+){0,3}\W*$"
    r"|\bno longer (?:protected|frozen|locked|blocked|forbidden|banned|off|restricted|away)\b"
    rf"|^\W*(?:\w+\W+)?(?:{_DROP}|raise|increase)\b.{{0,40}}\b(?:{_RULE}|things?|instructions?"
    r"|what i said)\b|\b(?:darf|dürfen)\b.*\bwieder\b|\bnicht mehr\b"
    r"|可以.*了|(?:又|再|重新|以后).{0,10}(?:可以|能)|可以(?:再|重新|继续)"
    r"|(?:取消|解除|作废|收回|撤销|忘).*(?:规定|规则|限制|禁令|说的)"
    r"|(?:规定|规则|限制|禁令).*(?:取消|解除|作废)"
)
# Words that take back the rule that just stopped a call, whatever they name.
_LETS_GO = re.compile(
    rf"(?:^|[,;] ?)\W*(?:and |so )?{_MAY}|changed my mind|\bscrap (?:that|it)\b|what i said"
    rf"|\bthings?\b.*\b{_OVER}\b|\b(?:is|are)(?: now)? {_FINE} now|不算了|算了吧"
)
_RELATIVE = re.compile(
    rf"\b({_RULE}) (?:about|on|against|concerning|not to|never to|that (?:you|i) (?:cannot|can't"
    r"|may not|must not|must never|should not))\b"
)
# A first line as in a mail: what follows may be pasted.
_HEAD = re.compile(r"\s*[^\W\d_][\w-]{0,20}\s*[:：].*\n")
_SPEAKER = re.compile(r"^\W*(?!update|ps|note|good news|更新|补充)[^\W\d][\w' .-]{0,30}[:：](?!//)")
# Words that do not say what is meant; in a demand, those of _NOISE do not, either.
_GRAMMAR = word_set(
    "a an the to in into on at of any anything thing things my our your you me it that with so as "
    "again now anymore more longer no don't not never nothing nobody and or also be been being is "
    "are get gets receive have do done go use using used run ok okay fine please back well like "
    "rule rules ban bans limit limits restriction restrictions yesterday's old earlier always "
    "often i said what ahead lifted gone off over whenever history"
)
_NOISE = FILLERS | word_set("keep leave alone hands stop quit avoid here say so longer rather")
_FORM = re.compile(
    rf"\b(?:{_MAY}|feel free to|go ahead|{_FINE}|{_OVER}|{_DROP}|what i said|instructions?|settled"
    r"|if you|at all|for good|wieder|darf)\b"
)
_NARROW = word_set("reply forward notify text cc bcc call query")  # than others of their kind
_ZH_KNOWN = "|".join(sorted((w for w in NOUNS | VERBS if CJK.match(w)), key=len, reverse=True))
_ZH_PARTS = re.compile(
    r"可以|以后|现在|永远|不要|不许|不准|禁止|绝对|规定|规则|限制|禁令|取消|解除|不用|不必|继续|重新"
    rf"|随便|那条|关于|恢复|允许|今后|({_ZH_KNOWN})"
    r"|[再给了的把将向往在到都就又先我你能不别下里收被每次]"
)
_WORD = re.compile(r"(?<![\w-])--?[a-z][\w-]*|[#.~/]*\w(?:[\w'@./]*\w)?", re.ASCII)
_ZH_RUN = re.compile(r"[\u3400-\u9fff]+")
_DIGITS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7"}
_DIGITS |= {"eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12"}
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w'-]+|\b[\w]*\d[\w]*[-_]\w+")
_GO_OUT = re.compile(r"\b(?:go(?:es|ing)?|roll(?:ed|ing)?) (?:out|live)\b")
_PATTERN_SIGNS = re.compile(r"\\[a-z]|[\\^$*+?()\[\]{}|]")
# The things and actions that words stand for, and labels that mean the same.
_LABELS = {f"to {name}": words - _NARROW for name, words in ACTIONS.items()} | SPOKEN
_SAME = {"to push": "to deploy"}
_CHANNELS = frozenset({"mail", "chat", "message", "phone"})
# A rule that permits or orders something. A permission does not contradict it.
_NO_BAN = re.compile(
    r"\b(?:only|always|except|unless|but|must(?! not| never|n't))\b|只|总是|必须|(?<![删解移])除"
)
_ASKS = re.compile(r"\bask|\bcheck|\bconfirm|\bapprov|问|确认")
_MAX_READ = 5  # sentences of a message that take something back


class _Meaning(NamedTuple):
    """What a rule forbids, as words to which a sentence is compared."""

    words: set[str]  # of its text, its conditions, and the model that noted it
    labels: set[str]  # of its words and its tool
    needed: set[str]  # words that a sentence has to name
    limits: set[str]
    text: str  # in lower case
    own: set[str]  # the `words` that are not from a model
    own_labels: set[str]  # of `own` and its tool


def lifted(message: str, rules: Sequence[ToolMemoryRule]) -> ToolMemoryRule | None:
    """Find the rule that the user's message takes back; None when in doubt."""
    texts = [lower(each.masked) for each in _sentences(message)]
    if any(map(_NOT_MEANT.search, texts)):
        return None
    spoils = [_is_doubtful(text) or bool(_SPOILS_NEIGHBOURS.search(text)) for text in texts]
    forms = []
    for at, text in enumerate(texts):
        neighbours = [*spoils[max(at - 1, 0) : at], *spoils[at + 1 : at + 2]]
        form = None if any(neighbours) else _form(text)
        forms += [] if form is None else [form]
    meanings = [_meaning(rule) for rule in rules] if forms else []
    for form in forms[:_MAX_READ]:
        fitting = [at for at, meaning in enumerate(meanings) if _surely_means(form, meaning)]
        if len(fitting) == 1:
            return rules[fitting[0]]
    return None


def possibly_lifted(
    message: str, rules: Sequence[ToolMemoryRule], stopped: Collection[str] = frozenset()
) -> tuple[list[ToolMemoryRule], str] | None:
    """Find the rules that the message may take back, and the sentence that does so; else None.

    Several rules are found if they share equally many words with the sentence. `stopped`: ids of
    the rules that just stopped a call. If only one did, a sentence that names nothing means it.
    """
    doubtful = _taking_back(message)
    meanings = [_meaning(rule) for rule in rules] if doubtful else []
    for sentence in doubtful:
        scores = [_likeness(sentence, meaning) for meaning in meanings]
        if not _named(sentence):
            scores = [int(rule.id in stopped and len(stopped) == 1) for rule in rules]
        highest = max(scores, default=0)
        if highest <= 0:
            continue
        best = [rule for rule, score in zip(rules, scores, strict=True) if score == highest]
        if len(best) > 1:
            best = [rule for rule in best if rule.id in stopped] or best
        return best, sentence.text
    return None


def may_mean(
    quote: str, message: str, rule: ToolMemoryRule, stopped: Collection[str] = frozenset()
) -> bool:
    """Whether the sentence of `message` that contains `quote` may take this rule back."""
    words = " ".join(quote.split())
    meaning = _meaning(rule)
    is_stop = set(stopped) == {rule.id}
    for sentence in _taking_back(message, is_stop):
        text = " ".join(sentence.text.split())
        if words and (words in text or text in words):
            names = _words(lower(" ".join(_NAME.findall(sentence.text))))
            if is_stop and all(_is_known(name, meaning) for name in names):
                return True
            if not _named(sentence):
                return False
            if _likeness(sentence, meaning, by_model=True):
                return True
    return False


def _sentences(message: str) -> list[Sentence]:
    """Return the user's sentences, without long ones: the patterns take quadratic time."""
    if _HEAD.match(message):
        return []
    own = own_sentences(message)
    return [each for each in own if len(each.text) <= MAX_SENTENCE]


def _taking_back(message: str, is_stop: bool = False) -> list[Sentence]:
    """Return sentences that may take something back. `is_stop`: a call was just stopped."""
    texts = [(each, lower(each.masked)) for each in _sentences(message)]
    found = [
        each
        for each, text in texts
        if (_MAY_LIFT.search(text) or (is_stop and _LETS_GO.search(text)))
        and not _is_doubtful(text)
    ]
    return found[:_MAX_READ]


def _is_doubtful(text: str) -> bool:
    """Whether a sentence has a word of doubt, or begins with the name of a speaker."""
    without_options = re.sub(r"(?<!\w)-[\w-]+", " ", _RELATIVE.sub(r"\1", text))
    return bool(_DOUBTFUL.search(without_options) or _SPEAKER.match(text))


def _form(text: str) -> re.Match[str] | None:
    """Match a sentence that drops a rule, or permits something for good."""
    if _is_doubtful(text) or re.search(r"\b(?:run|try|rerun) (?:the|it|that)\b", text):
        return None  # "you can run the deploy again" speaks of one call
    clause = _REASON.sub("", _RELATIVE.sub(r"\1", text))
    chinese = CJK.search(clause)
    if reference := (_ZH_REFERENCE if chinese else _REFERENCE).search(clause):
        return reference
    form = (_ZH_PERMISSION if chinese else _PERMISSION).search(clause)
    groups = form.groupdict() if form else {}
    lasting = bool(groups.get("asking") or _FOR_GOOD.search(clause))
    if order := groups.get("order"):
        lasting = "from now on" in clause and bool(_action_labels(order.split()[0]))
    if state := groups.get("state"):  # not "Sarah is fine again" or "deploys are fine again"
        said = _words(clause) - {state}
        is_done = len(said) > 1 and any(map(_labels, said))
        lasting &= is_done or any(word in PROGRAMS or word.endswith("ing") for word in said)
    if groups.get("subject") and _ZH_SENDS.search(clause):
        return None
    return form if lasting else None


def _surely_means(form: re.Match[str], meaning: _Meaning) -> bool:
    """Whether a sentence names what a rule forbids, and nothing else."""
    said = _words(" ".join(group for group in form.groups() if group))
    limits = _limits(form.string)
    if not meaning.needed or not all(_contains(word, said) for word in meaning.needed):
        return False
    meaning = meaning._replace(words=meaning.own, labels=meaning.own_labels)
    if not all(_is_known(word, meaning) for word in said):
        return False
    if "order" not in form.re.groupindex:  # it drops a rule
        return limits <= meaning.limits
    if limits != meaning.limits:
        return False
    if form["asking"]:
        return bool(_ASKS.search(meaning.text))
    return not _NO_BAN.search(meaning.text)


def _named(sentence: Sentence) -> set[str]:
    """Return the words of a sentence that say what the sentence is about."""
    return _words(_FORM.sub(" ", _RELATIVE.sub(r"\1", lower(sentence.masked))))


def _likeness(sentence: Sentence, meaning: _Meaning, *, by_model: bool = False) -> int:
    """Return how much a sentence shares with the rule that it may take back; 0: it means another.

    `by_model`: a model named the rule; names in another script than the rule's may be the same.
    """
    said = _named(sentence)
    names = _words(lower(" ".join(_NAME.findall(sentence.text))))
    unknown = {word for word in said | names if not _is_known(word, meaning)}
    if names & unknown or not _limits(lower(sentence.masked)) <= meaning.limits:
        return 0
    acts = [labels for labels in map(_action_labels, said) if labels]
    if acts and all(meaning.labels.isdisjoint(labels) for labels in acts):
        return 0
    shared = {label for word in said for label in _labels(word)} & meaning.labels
    particular = {word for word in said - unknown if not _labels(word)}
    if particular and not any("." in word for word in unknown):  # a file
        return 10 * len(particular) + len(shared)
    if by_model and not CJK.search(meaning.text):
        unknown = {word for word in unknown if not CJK.search(word)}
    return int(not unknown and bool(shared))


def _meaning(rule: ToolMemoryRule) -> _Meaning:
    """Read what a rule forbids, mostly from the words in its conditions.

    A model's own words are never needed, and do not let a sentence name more than the user forbade.
    """
    said = _REASON.sub("", rule.rule)
    values = _words(_text_of(rule.when))
    own = _words(lower(said))
    tool = spaced(re.sub("[_@]", " ", rule.tool_name))
    used = {part for word in values for part in (word, *re.findall(r"\w+", word))}
    prefixes = tuple(each for each in used if len(each) > 2)  # "prod" of "production"
    checked = {word for word in own if _contains(word, used) or word.startswith(prefixes)}
    words = checked | {word for word in own if word not in _NOISE}
    numbers = {word for word in words if word[0].isdigit()}
    names = (_words(lower(" ".join(_NAME.findall(said)))) | numbers | _NARROW) & words
    things = {word for word in checked | names if not _action_labels(word)} - PROGRAMS
    needed = things or {word for word in words if not _labels(word)} - PROGRAMS or words
    every = _words(f"{lower(rule.rule)} {lower(rule.said.understood)}") | used
    of_user = _words(lower(rule.rule)) | (set() if NOTED in rule.tags else used)
    tools = _words(tool.lower())
    return _Meaning(
        words=every,
        labels=_labels_of(every, tools),
        needed=needed,
        limits=_limits(lower(said)),
        text=lower(rule.rule),
        own=of_user,
        own_labels=_labels_of(of_user, tools),
    )


def _labels_of(words: set[str], tools: set[str]) -> set[str]:
    labels = {label for word in words | tools for label in _labels(word)}
    return labels | ({"file"} if any("/" in word or word[0] == "." for word in words) else set())


def _text_of(when: list[dict[str, Any]]) -> str:
    """Return the texts and numbers in conditions, without the special characters of patterns."""
    values = (str(value) for _, name, value in scalars({"": when}) if name != "name")
    return _PATTERN_SIGNS.sub(" ", " ".join(values).lower())


def _words(text: str) -> set[str]:
    """Return the words that say what is meant; in Chinese, what stands between common words."""
    text = _GO_OUT.sub("deploy", text.replace("e-mail", "email").replace("from now on", " "))
    text = re.sub(r"(?<=\d),(?=\d{3}\b)|'s(?= (?:on|in|off|out|away|back|not)\b)", "", text)
    english = {_DIGITS.get(word, word) for word in _WORD.findall(text)}
    chinese = {part for run in _ZH_RUN.findall(text) for part in _ZH_PARTS.split(run) if part}
    return (english - _GRAMMAR) | chinese


def _limits(text: str) -> set[str]:
    return {found.removesuffix("s") for found in _LIMIT.findall(text)}


@lru_cache(4096)
def _labels(word: str) -> frozenset[str]:
    """Return the actions and things that a word stands for; a narrow word stands for none."""
    forms = set(stems(word)) - _NARROW
    found = (name for name, words in _LABELS.items() if not words.isdisjoint(forms))
    return frozenset(_SAME.get(name, name) for name in found)


def _action_labels(word: str) -> frozenset[str]:
    return _labels(word) - SPOKEN.keys()


def _contains(word: str, words: Iterable[str]) -> bool:
    """Whether `words` contain a word or an inflection of it; a Chinese word may be a part."""
    if CJK.match(word):
        return any(word in each for each in words)
    forms = set(stems(word.strip("#./~")))
    return any(not forms.isdisjoint(stems(each.strip("#./~"))) for each in words)


def _is_known(word: str, meaning: _Meaning) -> bool:
    """Whether a rule says a word, or another word for the same kind of action or thing."""
    labels = _labels(word)
    kinds = labels & _CHANNELS or _action_labels(word) or labels
    return _contains(word, meaning.words) or not meaning.labels.isdisjoint(kinds)
