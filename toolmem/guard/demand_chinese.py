"""A Chinese sentence taken apart: there are no spaces, so the longest known word is taken at each place."""

from __future__ import annotations

from toolmem.guard.demands import MARKED, Demand, Literals, LiteralValue, currency, money, take_literal
from toolmem.guard.lexicon import FAMILIES, THINGS
from toolmem.guard.view import plain
from toolmem.guard.word_lists import CHINESE, form, table, turned, words
from toolmem.late import late_pattern
from toolmem.readers.shell import looks_like_command

_NOT, _ASK, _ONLY, _NOWHERE, _MORE, _REASON = (
    form(name, CHINESE) for name in ("not_", "ask", "only", "nowhere", "more", "reason")
)
_NAMES_A_THING = turned("verbs_that_name_things", CHINESE)


def _lexicon() -> dict[str, tuple[str, str]]:
    known: dict[str, tuple[str, str]] = dict.fromkeys(words("fillers", CHINESE), ("filler", ""))
    for family, listed in table("verbs", CHINESE).items():
        for word in listed:
            before = known.get(word)
            known[word] = ("verb", f"{before[1]} {family}" if before and before[0] == "verb" else family)
    for thing, listed in table("things", CHINESE).items():
        for word in listed:
            if word not in known or known[word][0] == "filler":
                known[word] = ("thing", thing)
    known.update({word: ("content", "") for word in words("content", CHINESE) if word not in known})
    return known


_LEXICON = _lexicon()
_LONGEST_WORD = max(map(len, _LEXICON))
_TO = words("before_names", CHINESE)
_ENGLISH = late_pattern(r"[A-Za-z][A-Za-z'’-]*")
_OUTSIDE = late_pattern("(?:以外|之外|除外)$")
_CJK = late_pattern("[\u3400-\u9fff]")


def read(sentence: str, vocabulary: frozenset[str]) -> Demand:
    """A Chinese sentence taken apart; `vocabulary`: the things that tools at hand speak of."""
    marked = Literals(sentence.strip().rstrip("。.！!"))
    demand = Demand()
    text = marked.text
    cut = _REASON.sub(lambda found: found.group() if MARKED.search(found.group()) else "", text)
    text = cut if _NOT.search(cut) or _ONLY.search(cut) or _ASK.search(cut) else text
    text = _NOWHERE.sub("", text)
    if _ASK.search(text):
        demand.effect = "ask"
        text = _NOT.sub(" ", _ASK.sub(" ", text))
    elif _ONLY.search(text) and not _NOT.search(_ONLY.sub(" ", text)):
        demand.effect, demand.only = "deny", True
        text = _ONLY.sub(" ", text)
    elif _NOT.search(text):
        demand.effect = "deny"
        text = _NOT.sub(" ", text)
    else:
        return demand
    text = _amounts(text, marked, demand)
    _read_words(text, marked, demand, vocabulary)
    return demand


def _amounts(text: str, marked: Literals, demand: Demand) -> str:
    for found in _MORE.finditer(text):
        kind, said = marked[found["mark"]]
        value = money(said) if kind == "money" or found["after"] or found.group()[0] in "超高大多" else None
        if value is not None and (found["after"] or found.group().strip()[:1] in set("超高大多")):
            demand.bound, demand.currency = ("exclusiveMinimum", value), currency(said)
            return text[: found.start()] + " " + text[found.end() :]
    return text


def _read_words(text: str, marked: Literals, demand: Demand, vocabulary: frozenset[str]) -> None:
    at, before = 0, ""
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        if MARKED.match(text, at):
            take_literal(*marked[text[at]], demand)
            before, at = text[at], at + 1
            continue
        if english := _ENGLISH.match(text, at):
            _take_english(english.group(), demand, vocabulary, before)
            before, at = english.group(), english.end()
            continue
        word = next(
            (text[at : at + length] for length in range(_LONGEST_WORD, 0, -1) if text[at : at + length] in _LEXICON), ""
        )
        in_a_name = len(word) == 1 and before in _TO and len(_name_at(text, at)) > 1 and _LEXICON[word][0] == "filler"
        if word and not in_a_name:
            if _LEXICON[word][0] != "content" or MARKED.match(text[at + len(word) :].lstrip()):
                _take_word(word, demand, vocabulary)
            elif word not in {"代码", "内容里"} or not ("push" in demand.families or "推" in text):
                demand.unread.append(word)
            before, at = word, at + len(word)
            continue
        name = _name_at(text, at)
        if name and before in _TO and not _OUTSIDE.search(name):
            demand.literals.append(LiteralValue("name", plain(name), demand.content))
        else:
            demand.unread.append(name or text[at])
        before, at = name or text[at], at + len(name or text[at])


def _name_at(text: str, at: int) -> str:
    """The characters from `at` on up to the next known word, or mark, or space: 王经理 in 给王经理发邮件."""
    end = at
    while end < len(text) and end - at < 12 and _CJK.match(text[end]):
        if end > at and any(text[end : end + length] in _LEXICON for length in range(_LONGEST_WORD, 0, -1)):
            break
        end += 1
    return text[at:end]


def _take_word(word: str, demand: Demand, vocabulary: frozenset[str]) -> None:
    kind, says = _LEXICON[word]
    if kind == "verb":
        demand.verbs.append(word)
    if says == "force":
        demand.force = True
    elif kind == "verb":
        demand.families.update(says.split())
        demand.content = demand.content or says == "mention"  # what follows is what is written
        for part, things in _NAMES_A_THING.items():
            if part in word:
                demand.things |= things & vocabulary
    elif kind == "thing":
        if says in vocabulary:
            demand.things.add(says)
        elif says == "branch" and "push" in demand.families | {"push"}:
            return
        else:
            demand.unread.append(word)
    elif kind == "content":
        demand.content = True


def demand_is_about_places(demand: Demand, word: str) -> bool:
    """ "main" and "production" name a branch, an environment."""
    return word[0].islower() and not demand.families - {"push", "merge", "deploy", "read", "post", "fetch"}


def _take_english(word: str, demand: Demand, vocabulary: frozenset[str], before: str) -> None:
    small = word.lower()
    things = THINGS.get(small, frozenset((small,)))
    if things & vocabulary:
        demand.things |= things & vocabulary
    elif "run" in demand.families and not demand.literals and (looks_like_command(small) or small in {"sudo", "doas"}):
        demand.literals.append(LiteralValue("program", small))
    elif small in FAMILIES and not demand.families:
        demand.families |= FAMILIES[small]
    elif (before in _TO or demand.families & {"push", "merge"}) and demand_is_about_places(demand, word):
        demand.literals.append(LiteralValue("word", plain(word)))
    elif before in _TO or word[0].isupper():
        demand.literals.append(LiteralValue("name", plain(word), demand.content))
    else:
        demand.unread.append(word)
