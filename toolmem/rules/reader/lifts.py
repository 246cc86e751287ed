"""Find the rule that a plain sentence of the user takes back.

`lifted` finds the one rule that a sentence surely means: it permits or drops something, names what
the rule forbids, and nothing that the rule does not say. `possibly_lifted` and `may_mean` find a
rule that it may mean, for the user to decide. A sentence that asks, reports, forbids, sets a
condition or permits something for a while takes nothing back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.reader.own_text import MAX_SENTENCE, Sentence, lower, own_sentences
from toolmem.rules.reader.words import ACTIONS, CJK, FILLERS, NOUNS, PROGRAMS, SPOKEN, VERBS, stems
from toolmem.text.forms import word_set

_LEAD = (
    r"^\W*(?:(?:ok(?:ay)?|actually|fine|all ?right|yes|so|well|good news|from now on|please|and|also"
    r"|i(?:'ve| have) changed my mind|we made up)\b\W*)*"
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
_ZH_SENDS = re.compile(r"^(?!.*[给向对收被在往]).*(?:发|寄|联系)")  # no receiver
# The permission holds for good.
_FOR_GOOD = re.compile(
    r"\b(?:again|from now on|any ?more|no longer|any longer|whenever|stop asking|no need)\b"
    r"|以后|今后|从现在|又|了\W*$|再|恢复"
)
# It asks, reports, wishes, forbids or excepts, sets a condition, or permits for a while.
_DOUBTFUL = re.compile(
    r"^\W*(?:can|could|may|am|is|are|do|does|did|who|what|why|how|when)\b|\?"
    r"|\b(?:if|unless|when(?!ever)|once|as (?:soon|long) as|provided|in case|whether|until|till"
    r"|while|suppos\w+|assum\w+|imagine|pretend|let's say|then|says?|(?<!\bi )(?:said|told)|tells?"
    r"|wrote|writes|claim\w*|according|hear[ds]?|reads|reported|apparently|allegedly|thinks?"
    r"|thought|believes?|announced|asks|asked|mentioned|rumou?rs?|wish|hope|want|would|could"
    r"|should|must|might|maybe|perhaps|probably|just|only|for (?:now|once|a|an|one|two|the|this"
    r"|\d+)|one time|this (?!is|was|rule|ban)\w+|temporarily|except|but|apart from|other than"
    r"|however|though|although|still|stays?|remains?|(?:not|\w*n't)(?! (?:apply|hold|count|stand) any| (?:have|need) to ask)|cannot|never(?! ?mind)|nobody|none"
    r"|no one|nothing|neither|nor|no(?! longer| need)|hardly|scarcely|barely|rarely|seldom"
    r"|forbid\w*|avoid|stop(?! ask)|nicht(?! mehr)|kein\w*|nie|wenn)\b"
    r"|\b(?:can|may|must|to|you|do|does|will) no longer (?!(?:have|need) to)"
    r"|no longer (?:can|may|welcome|possible|(?:allowed|permitted|free|fine|ok(?:ay)?)\b)"
    r"|如果|只|等|但|(?<!解)除[了非]|的时候|这次|这一次|就这|暂时|说|也许|可能|[吗?？]|没人|没有|谁|难道|(?<!数)据(?!库)|要是"
    r"|假如|当|是否|是不是|能不能|不可以|不能|不许|不要|不准|(?<![特级个])别|希望|应该|翻译|告诉|好像|(?<!刚)才"
    r"|不再?(?:可以|能|允许)"
)
# It is not meant so, or another sentence of the message takes it back or narrows it.
_IRONY = re.compile(
    r"\b(?:sure|great|of course|ha(?:ha)*|lol|jok\w+|kidding|as if|yeah|fired)\b|开玩笑"
)
_SECOND_THOUGHT = re.compile(
    r"^\W*(?:but|except|only|not|never|unless|however|just|though|no|nope|if|when|as (?:long|soon)"
    r"|provided|once|until|wait|scratch)\b|^\W*(?:但|除|只|不|别|如果|等)|\b(?:kidding|jok\w+|suppose"
    r"|imagine|pretend|what if|says|(?<!\bi )said|wrote|claims)\b|开玩笑"
)
# What narrows a permission has to narrow the rule.
_LIMIT = re.compile(
    r"\b(?:before|after|without|during|(?<!is )(?<!are )over|under|above|below|today|tonight"
    r"|tomorrow|\w+days?|at night|weekends?)\b|(?<=[点号日月天时])(?:以前|之前|以后|之后|前|后)|超过|以上|以下|低于"
    r"|周.|星期.|今[天晚]|明天|之前"
)
_REASON = re.compile(
    r"[,;] (?:(?:because|since|now that) )?(?:(?:i|we)(?:'ve| have)|she|he|they|the|our|my)\b.*$"
    r"|[，,](?:因为|她|他|这).*$"
)
# Words with which people take something back, in sentences of any form.
_MAY_LIFT = re.compile(
    rf"(?:^|[,;] ?(?:and |so )?|\bso ){_MAY}.*\b(?:again|now|from now on|any ?time)\b|feel free to"
    rf"|\b(?:is|are)(?: now)? {_FINE} (?:again|now|from now on)|\b{_RULE}\b.*\b{_OVER}\b"
    r"|\bis (?:history|obsolete|settled|dead|over|off|back)\b(?: \w+){0,3}\W*$"
    r"|\bno longer (?:protected|frozen|locked|blocked|forbidden|banned|off|restricted|away)\b"
    rf"|^\W*(?:\w+\W+)?(?:{_DROP}|raise|increase)\b.{{0,40}}\b(?:{_RULE}|things?|instructions?"
    r"|what i said)\b|\b(?:darf|dürfen)\b.*\bwieder\b|\bnicht mehr\b"
    r"|可以.*了|(?:又|再|重新|以后).{0,10}(?:可以|能)|可以(?:再|重新|继续)"
    r"|(?:取消|解除|作废|收回|撤销|忘).*(?:规定|规则|限制|禁令|说的)|(?:规定|规则|限制|禁令).*(?:取消|解除|作废)"
)
_RELATIVE = re.compile(
    rf"\b({_RULE}) (?:about|on|against|concerning|not to|never to|that (?:you|i) (?:cannot|can't"
    r"|may not|must not|must never|should not))\b"
)
_HEAD = re.compile(r"\s*[^\W\d_][\w-]{0,20}\s*[:：].*\n")  # as of a mail: the rest may be pasted
_SPEAKER = re.compile(r"^\W*(?!update|ps|note|good news|更新|补充)[^\W\d][\w' .-]{0,30}[:：](?!//)")
# Words that do not say what is meant.
_GRAMMAR = word_set(
    "a an the to in into on at of any my our again now on ok okay fine please anymore more longer "
    "no and or also be been being get gets receive have do done go use using used run it that "
    "with as well back like you your me rule rules ban bans limit limits restriction restrictions "
    "yesterday's old things any anything don't not never nothing nobody earlier always often i said thing what ahead is are so there lifted gone off "
    "over whenever history"
)
_NARROW = word_set(
    "reply forward notify text cc bcc call query"
)  # narrower than what they stand with
_ZH_GRAMMAR = (
    r"可以|以后|现在|永远|不要|不许|不准|禁止|绝对|规定|规则|限制|禁令|取消|解除|不用|不必|继续|重新"
    r"|随便|那条|关于|恢复|允许|今后"
)
_ZH_KNOWN = "|".join(sorted((w for w in NOUNS | VERBS if CJK.match(w)), key=len, reverse=True))
_ZH_PARTS = re.compile(
    rf"{_ZH_GRAMMAR}|({_ZH_KNOWN})|[再给了的把将向往在到都就又先我你能不别下里收被每次]"
)
_ZH_RUN = re.compile(r"[\u3400-\u9fff]+")
_WORD = re.compile(r"(?<![\w-])--?[a-z][\w-]*|[#.~/]*\w(?:[\w'@./]*\w)?", re.ASCII)
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_DIGITS = {name: str(number) for number, name in enumerate(_NUMBERS)}
_LABELS = [(f"{name} something", words - _NARROW) for name, words in ACTIONS.items()]
_LABELS += [(name, words - _NARROW) for name, words in SPOKEN.items()]
_CHANNELS = frozenset({"mail", "chat", "message", "phone"})
_SAME = {"push something": "deploy something", "pay something": "transfer something"}
_GO_OUT = re.compile(r"\b(?:go(?:es|ing)?|roll(?:ed|ing)?) (?:out|live)\b")
_PATTERN_SIGNS = re.compile(r"\\[a-z]|[\\^$*+?()\[\]{}|]")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w'-]+|\b[\w]*\d[\w]*[-_]\w+")
# Words of a demand that do not say what it is about.
_NOISE = word_set("keep leave alone hands stop quit avoid thing things here say so longer rather")
_FORM = re.compile(
    rf"\b(?:{_MAY}|feel free to|go ahead|{_FINE}|{_OVER}|{_DROP}|what i said|instructions?|settled"
    r"|things?|now|if you|at all|for good|wieder|darf)\b"
)
# A rule that permits or orders something: a permission agrees with it.
_NO_BAN = re.compile(
    r"\b(?:only|always|except|unless|but|must(?! not| never|n't))\b|只|总是|必须|除"
)
_ASKS = re.compile(r"\bask|\bcheck|\bconfirm|\bapprov|问|确认")


class _Rule(NamedTuple):
    """What a rule forbids, in words to compare a sentence with."""

    words: set[str]  # also of its conditions, and of the model that noted it
    labels: set[str]  # of what its calls do, and with what
    needed: list[set[str]]  # a sentence names all words of one of them
    limits: set[str]


def lifted(message: str, rules: Sequence[ToolMemoryRule]) -> ToolMemoryRule | None:
    """Find the rule that the user's message takes back; None when in doubt."""
    texts = [lower(each.masked) for each in _sentences(message)]
    for at, text in enumerate(texts):
        others = texts[:at] + texts[at + 1 :]
        if _IRONY.search(text) or any(map(_SECOND_THOUGHT.search, others)):
            continue
        fitting = [rule for rule in rules if _surely_means(text, rule)]
        if len(fitting) == 1:
            return fitting[0]
    return None


def possibly_lifted(
    message: str, rules: Sequence[ToolMemoryRule], stopped: Collection[str] = frozenset()
) -> tuple[ToolMemoryRule, str] | None:
    """Find the rule that the message may take back, and the sentence that does so.

    It shares more words with the sentence than every other rule. `stopped`: ids of the rules that
    stopped a call just before; a sentence that names nothing means the only one of them.
    """
    for sentence in _sentences(message):
        scores = [_likeness(sentence, rule, stopped) for rule in rules]
        best = [rule for rule, score in zip(rules, scores, strict=True) if 0 < score == max(scores)]
        if len(best) > 1:
            best = [rule for rule in best if rule.id in stopped]
        if len(best) == 1:
            return best[0], sentence.text
    return None


def may_mean(
    quote: str, message: str, rule: ToolMemoryRule, stopped: Collection[str] = frozenset()
) -> bool:
    """Whether a sentence of the message that holds the quote may take this rule back."""
    words = " ".join(quote.split())
    for sentence in _sentences(message):
        text = " ".join(sentence.text.split())
        is_quoted = bool(words) and (words in text or text in words)
        if is_quoted and _likeness(sentence, rule, stopped, is_named=True):
            return True
    return False


def _sentences(message: str) -> list[Sentence]:
    """The user's own sentences but long ones, which the patterns search in quadratic time."""
    if _HEAD.match(message):
        return []
    own = own_sentences(message, lambda _: False)
    return [each for each in own if len(each.text) <= MAX_SENTENCE]


def _is_doubtful(text: str) -> bool:
    plain = re.sub(
        r"(?<!\w)-[\w-]+", " ", _RELATIVE.sub(r"\1", text)
    )  # "--no-verify" denies nothing
    return bool(_DOUBTFUL.search(plain) or _SPEAKER.match(text))


def _surely_means(text: str, rule: ToolMemoryRule) -> bool:
    """Whether a sentence permits all that a rule forbids, or drops the rule, and says no more."""
    if _is_doubtful(text):
        return False
    clause, chinese = _REASON.sub("", _RELATIVE.sub(r"\1", text)), CJK.search(text)
    reference = (_ZH_REFERENCE if chinese else _REFERENCE).search(clause)
    form = reference or (_ZH_PERMISSION if chinese else _PERMISSION).search(clause)
    if form is None:
        return False
    meant, said = _meaning(rule), _words(" ".join(group for group in form.groups() if group))
    if not any(words and all(_has(word, said) for word in words) for words in meant.needed):
        return False
    if not all(_is_known(word, meant) for word in said):
        return False
    limits = _limits(clause)
    if reference:
        return limits <= meant.limits
    return limits == meant.limits and _is_lasting(form, clause, said, rule)


def _is_lasting(form: re.Match[str], clause: str, said: set[str], rule: ToolMemoryRule) -> bool:
    """Whether a sentence permits for good what a rule of this kind forbids."""
    groups, own = form.groupdict(), lower(rule.rule)
    if groups.get("asking"):
        return bool(_ASKS.search(own))
    if groups.get("order"):
        first = groups["order"].split()[0]
        return "from now on" in clause and bool(_acts(first)) and not _NO_BAN.search(own)
    if groups.get("state") and not any(_labels(word) or word in PROGRAMS for word in said):
        return False  # "Sarah is fine again"
    if (groups.get("subject") and _ZH_SENDS.search(clause)) or _NO_BAN.search(own):
        return False
    return bool(_FOR_GOOD.search(clause))


def _likeness(
    sentence: Sentence, rule: ToolMemoryRule, stopped: Collection[str], *, is_named: bool = False
) -> int:
    """How much a sentence that takes something back shares with a rule; 0: it does not mean it.

    `is_named`: a model named the rule; names in another script than the rule's may be the same.
    """
    text = lower(sentence.masked)
    if not _MAY_LIFT.search(text) or _is_doubtful(text):
        return 0
    meant, said = _meaning(rule), _words(_FORM.sub(" ", _RELATIVE.sub(r"\1", text)))
    if not said:
        return int(rule.id in stopped and len(stopped) == 1)
    names = _words(lower(" ".join(_NAME.findall(sentence.text))))
    acts = [labels for word in said if (labels := _acts(word))]
    if not _limits(text) <= meant.limits or not all(_is_known(word, meant) for word in names):
        return 0
    if acts and not any(labels & meant.labels for labels in acts):
        return 0
    shared = {label for word in said for label in _labels(word)} & meant.labels
    strange = [word for word in said if not _is_known(word, meant)]
    particular = {word for word in said if not _labels(word) and _is_known(word, meant)}
    if particular and not any("." in word for word in strange):  # a file
        return 10 * len(particular) + len(shared)
    if is_named and not CJK.search(rule.rule):
        strange = [word for word in strange if not CJK.search(word)]
    return int(not strange and bool(shared))


def _meaning(rule: ToolMemoryRule) -> _Rule:
    own, values = lower(_REASON.sub("", rule.rule)), " ".join(_texts(rule.when))
    tool = re.sub(r"[_@]|(?<=[a-z])(?=[A-Z])", " ", rule.tool_name).lower()
    used = {part for word in _words(values) for part in (word, *re.findall(r"\w+", word))}
    checked = {word for word in _words(own) if any(_is_alike(word, part) for part in used)}
    words = checked | {word for word in _words(own) if word not in FILLERS | _NOISE}
    names = _words(lower(" ".join(_NAME.findall(_REASON.sub("", rule.rule))))) & words
    things = {word for word in checked | names if not _acts(word) and word not in PROGRAMS}
    needed = [things or {word for word in words if not _labels(word)} - PROGRAMS or words]
    if not checked:
        needed.append({word for word in _words(values) if not _labels(word)})
    every = _words(f"{lower(rule.rule)} {lower(rule.said.understood)}") | used
    labels = {label for word in every | _words(tool) for label in _labels(word)}
    if any("/" in word or word.startswith(".") for word in every):
        labels.add("file")
    return _Rule(every, labels, needed, _limits(own))


def _texts(value: Any) -> Iterator[str]:
    """The texts and numbers in conditions, without the signs of patterns."""
    if isinstance(value, dict):
        value = [each for key, each in value.items() if key != "name"]
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    else:
        yield _PATTERN_SIGNS.sub(" ", str(value).lower())


def _words(text: str) -> set[str]:
    """The words that say what is meant; of Chinese, what is left between common words."""
    text = _GO_OUT.sub("deploy", text.replace("e-mail", "email"))
    text = text.replace("from now on", " ")
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"\b([01]?\d|2[0-4]):00\b", lambda found: _spoken_hour(int(found[1])), text)
    text = re.sub(r"(?<=\d)(?=[ap]m\b)", " ", text)
    english = {_DIGITS.get(word, word) for word in _WORD.findall(text)}
    chinese = {part for run in _ZH_RUN.findall(text) for part in _ZH_PARTS.split(run) if part}
    return (english - _GRAMMAR) | chinese


def _spoken_hour(hour: int) -> str:
    return f"{hour - 12} pm" if hour > 12 else f"{hour} am"


def _limits(text: str) -> set[str]:
    return {found.removesuffix("s") for found in _LIMIT.findall(text)}


def _labels(word: str) -> set[str]:
    """What a word is called in the tables of actions and things; of a narrow word, nothing."""
    forms = set(stems(word))
    return {_SAME.get(name, name) for name, listed in _LABELS if not listed.isdisjoint(forms)}


def _acts(word: str) -> set[str]:
    return {label for label in _labels(word) if label not in SPOKEN}


def _is_alike(word: str, other: str) -> bool:
    """Whether a word is one of a condition, or begins with it: "production" with "prod"."""
    return _has(word, {other}) or (len(other) > 2 and word.startswith(other))


def _has(word: str, words: Iterable[str]) -> bool:
    """Whether a word, or an inflection of it, is among others; Chinese may stand inside of one."""
    forms = set(stems(word.strip("#./~")))
    return any(
        not forms.isdisjoint(stems(each.strip("#./~"))) or (CJK.match(word) and word in each)
        for each in words
    )


def _is_known(word: str, meant: _Rule) -> bool:
    """Whether a rule says a word, or what is done with the same kind of thing."""
    labels = _labels(word)
    kinds = labels & _CHANNELS or _acts(word) or labels
    return _has(word, meant.words) or not meant.labels.isdisjoint(kinds)
