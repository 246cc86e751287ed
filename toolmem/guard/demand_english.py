"""An English sentence taken apart, word by word."""

from __future__ import annotations

import re

from toolmem.guard.demands import MARKED, Demand, Literals, LiteralValue, currency, money, take_literal
from toolmem.guard.lexicon import (
    APPOSITIONS,
    CONTENT,
    DOINGS,
    FAMILIES,
    FILLERS,
    LIGHT,
    NOT_NAMES,
    THINGS,
    TIMES,
    base_forms,
    families_of,
    things_of,
)
from toolmem.guard.view import plain
from toolmem.guard.word_lists import form, split, words
from toolmem.late import late_pattern
from toolmem.readers.shell import looks_like_command

_REASON = form("reason")
_ASK = form("ask")
_BEFORE = form("before")
_NOT = form("not_")
_ONLY = form("only")
_EXCEPT = form("except")
_LASTING = form("lasting")
_MORE = form("more")
_MOST = form("most")
_ONE = form("one")
_ADDRESSES = form("addresses")
_WORD = late_pattern(r"[\ue000-\uf8ff]|[A-Za-z][A-Za-z'’-]*|\d+|\S")
_PREPOSITIONS = words("prepositions")
_NOBODY_WRITTEN_TO = late_pattern(r"\b(?:write|writing)\s+(?:anything|a\s+word|nothing)\s*$", re.I)
_COUNTED = late_pattern(r"\s+(?!(?:to|in|per|on|for|at|from|with|a|an|each|total|by|of|or|and|without)\b)[A-Za-z]")
_REPLY_ALL = late_pattern(r"\breply(?:ing)?[ -]+(?:to[ -]+)?all\b(?!\s+\w)", re.I)
_FROM = late_pattern(r"\b(?:from|rows?|records?)\b", re.I)
_TO_WHOM = split("to with")
_CONTACTS = split("email e-mail mail message msg dm text contact notify call ping cc bcc")
_NEEDED = split("file email web channel event message money")
_NAMED_BEFORE = words("named_before")  # things that the word before them names: "the orders table"
_WRITING = words("writing")  # verbs whose object is written somewhere


def read(sentence: str, vocabulary: frozenset[str]) -> Demand:
    """An English sentence taken apart; `vocabulary`: the things that tools at hand speak of."""
    marked = Literals(sentence.replace("’", "'").strip().rstrip(".!"))
    demand = Demand()
    text = _without_reasons(marked.text)
    text = _ADDRESSES.sub(" ", _LASTING.sub(" ", _ONE.sub(" ", text)))
    if _REPLY_ALL.search(text):
        demand.unread.append("reply all")  # to whom, not whether
    asked = _ASK.search(text)
    if asked:
        demand.effect = "ask"
        text = _ASK.sub(" ", text)
        text = _NOT.sub(" ", _BEFORE.sub(" ", text))
    elif _NOT.search(text):
        demand.effect = "deny"
        text = _NOT.sub(" ", text, count=0)
        if _EXCEPT.search(text):
            demand.only, text = True, _EXCEPT.sub(" ", text)
    elif _ONLY.search(text):
        demand.effect, demand.only = "deny", True
        text = _ONLY.sub(" ", text)
    else:
        return demand
    text = _amounts(text, marked, demand)
    _read_words(text, marked, demand, vocabulary)
    demand.rows = "delete" in demand.families and _FROM.search(text) is not None
    if "write" in demand.families and _NOBODY_WRITTEN_TO.search(text):
        demand.families.discard("send")
    return demand


def _without_reasons(text: str) -> str:
    """A sentence without the clause that says why: what follows it limits nothing."""
    cut = _REASON.sub("", text)
    return cut if _NOT.search(cut) or _ONLY.search(cut) or _ASK.search(cut) else text


def _amounts(text: str, marked: Literals, demand: Demand) -> str:
    """The bound on an amount, where there is one."""
    for pattern, keyword in ((_MORE, "exclusiveMinimum"), (_MOST, "exclusiveMaximum")):
        for found in pattern.finditer(text):
            mark = MARKED.match(text, found.end())
            if mark is None:
                continue
            kind, said = marked[mark.group()]
            value = money(said)
            if value is None or (kind != "money" and _COUNTED.match(text, mark.end())):
                continue  # "more than 100 shares" is a count, not an amount
            demand.currency = currency(said)
            if keyword == "exclusiveMaximum" and demand.only:
                keyword, demand.only = "exclusiveMinimum", False  # "only up to 50": more than 50 is denied
            demand.bound = (keyword, value)
            return text[: found.start()] + " " + text[mark.end() :]
    return text


def _read_words(text: str, marked: Literals, demand: Demand, vocabulary: frozenset[str]) -> None:
    """Each word in turn: a verb, a thing, a literal, a name, a filler, or something that is not understood."""
    reader = _EnglishReader(demand, vocabulary)
    words = _WORD.findall(text)
    for at, word in enumerate(words):
        reader.is_last = at == len(words) - 1
        if MARKED.fullmatch(word):
            reader.literal(*marked[word])
        elif word[0].isupper() and reader.names(word, first=at == 0):
            reader.name(word)
        elif word[0].isalpha():
            reader.word(word.lower())
        elif word in {",", "(", ")", ":", "-", "–", "—", "'", '"', ".", "!"}:
            reader.pause()
        else:
            reader.unread(word)
    reader.end()


class _EnglishReader:
    """Reads word after word into a demand; knows what stood before."""

    def __init__(self, demand: Demand, vocabulary: frozenset[str]) -> None:
        self.demand = demand
        self._vocabulary = vocabulary
        self._before = ""
        self._thing = ""  # the thing that the last words named, where a name may follow: "the channel private"
        self._apposed: list[str] = []  # words that only say what kind a literal is, if one follows
        self._names: list[str] = []
        self._spoken = False  # what is written, where no literal says it
        self._last = ""  # what the last word was taken for
        self._verb = ""
        self._direct = True  # no preposition has come since the verb
        self._to_whom = False  # the names stand after "to": "mention it to Bob"
        self.is_last = False  # the word that is read next ends the sentence
        self._light = False  # a verb that says less than its object: "make a payment"

    def literal(self, kind: str, text: str) -> None:
        self._end_name()
        self._last = "literal"
        for word in self._apposed:  # "passport number HGK137803"
            self.demand.things -= things_of(word) - self._needed
        self._apposed = []
        if kind == "word" and text.isdigit() and not (self._apposed or self._before_number):
            self.unread(text)
            return
        self._spoken = False
        written = self._direct and kind not in {"email", "channel", "user"} and self._verb in _WRITING
        before = self.demand.content
        mentioned = "mention" in self.demand.families and self._before not in _TO_WHOM
        self.demand.content = before or written or mentioned
        take_literal(kind, text, self.demand)
        self.demand.content = before
        self._before, self._thing = "\ue000", ""

    @property
    def _before_number(self) -> bool:
        """ "the file with ID 13", "file 13"."""
        said = self._before in {"id", "number", "no", "nr"} or self._spoken
        return said or bool(things_of(self._before) & self._vocabulary)

    @property
    def _needed(self) -> frozenset[str]:
        """Things without which a verb says nothing: "read the file x", "push to the branch y"."""
        return _NEEDED if self.demand.families else frozenset()

    def names(self, word: str, *, first: bool) -> bool:
        small = word.lower().removesuffix("'s")
        if small in NOT_NAMES or small in FILLERS or small in TIMES or set(base_forms(small)) & TIMES:
            return False
        if things_of(small) & self._vocabulary and not self._names:
            return False
        return not first and not (families_of(small) and not self.demand.families)

    def name(self, word: str) -> None:
        if self._before in {"in", "for", "during", "by", "about"} and not self._names:
            self.unread(word)
        elif word.endswith("'s"):
            self.unread(word)  # "Sarah's assistant" is somebody else
        else:
            self._to_whom = self._to_whom if self._names else self._before in _TO_WHOM
            self._names.append(word)
        self._before = word.lower()

    def unread(self, word: str) -> None:
        self.demand.unread.append(word)

    def pause(self) -> None:
        self._end_name()

    def end(self) -> None:
        self._end_name()
        self._drop_apposed()
        if self._spoken:
            self.unread("what is written")
        if self.demand.force and "push" not in self.demand.families:
            self.unread("force")

    def _end_name(self) -> None:
        if self._names:
            mentioned = "mention" in self.demand.families and not self._to_whom
            content = self.demand.content or mentioned or (self._direct and self._verb in _WRITING)
            self.demand.literals.append(LiteralValue("name", plain(" ".join(self._names)), content))
            self._names, self._apposed, self._spoken = [], [], False

    def word(self, word: str) -> None:
        if self._names and set(base_forms(word)) & THINGS.keys() and things_of(word) & self._vocabulary:
            self._names.append(word)  # "the Riverside View hotel"
            return
        self._end_name()
        if word in _PREPOSITIONS:
            self._direct = False
        if self._of_program(word):
            program = self.demand.literals.pop()
            self.demand.literals.append(LiteralValue("program", f"{program.text} {word}"))
            self._before, self._last = word, "literal"
            return
        role = self._role(word)
        if word in APPOSITIONS and role in {"thing", "filler", "content", "unread"}:
            self._apposed.append(word)
            if role == "unread":
                role = "waiting"
        elif word not in {"with", "the", "my", "a", "an", "id", "number", "named", "called", "our", "your"}:
            self._drop_apposed()
        if word in _NAMED_BEFORE and self._last in {"thing", "unread"}:
            self._take_back(self._before)  # "the orders table"
        elif role == "unread":
            self._unknown(word)
        elif role == "waiting":
            self._thing = word
        elif role == "thing":
            self._thing = next(iter(things_of(word) & self._vocabulary))
        elif word not in {"with", "id", "named", "called", "number", "the"}:
            self._thing = ""
        self._before, self._last = word, role

    def _take_back(self, word: str) -> None:
        """The word before names the thing after it."""
        if word in self.demand.unread:
            self.demand.unread.remove(word)
        self.demand.things -= things_of(word)
        self.demand.literals.append(LiteralValue("channel", word))

    def _drop_apposed(self) -> None:
        """No literal came: the words count for themselves."""
        for word in self._apposed:
            if self._alone(word) == "unread":
                self.unread(word)
        self._apposed = []

    def _alone(self, word: str) -> str:
        known = word in CONTENT or word in FILLERS or families_of(word) or things_of(word) & self._vocabulary
        return "known" if known else "unread"

    def _unknown(self, word: str) -> None:
        """A word of which nothing is known: a name where one may stand, else a limit that is not understood."""
        families = self.demand.families
        is_time = bool(set(base_forms(word)) & TIMES)
        if not is_time and self._thing in {"channel", "user", "branch", "table", "folder", "environment", "service"}:
            self.demand.literals.append(LiteralValue("channel", word))
        elif not is_time and families & {"push", "merge", "deploy"} and self._before in {"to", "into", "onto", "the"}:
            self.demand.literals.append(LiteralValue("word", word))
        elif families & {"run"} and self._may_be_program(word):
            self.demand.literals.append(LiteralValue("program", word))
        elif families & {"push"} and word in {"force", "forced"}:
            self.demand.force = True
        elif self._is_whom(word):
            self._names.append(word)
        else:
            self.unread(word)

    def _is_whom(self, word: str) -> bool:
        """ "never email sarah": right after the verb, the last word but for "ever again", and none of a language's."""
        contacts = "send" in self.demand.families and self._verb in _CONTACTS and not self.demand.literals
        return contacts and self._last == "verb" and self.is_last and word.isalpha() and not word.endswith("s")

    def _may_be_program(self, word: str) -> bool:
        """ "use curl", "use curl or wget"."""
        said = self.demand.literals
        if not said:
            return looks_like_command(word) or word in {"sudo", "doas", "su"}
        return self._before in {"or", "and", "nor", ","} and all(each.kind == "program" for each in said)

    def _of_program(self, word: str) -> bool:
        """ "use pip install": what the program is to do."""
        said = self.demand.literals
        after = bool(said) and said[-1].kind == "program" and said[-1].text == self._before
        return after and word.isascii() and word not in _PREPOSITIONS and word not in FILLERS

    def _role(self, word: str) -> str:
        demand, families, things = self.demand, families_of(word), things_of(word)
        if word in {"force", "force-push", "forcefully"}:
            demand.force = True
            demand.families |= {"push"} if word == "force-push" else set()
            return "verb"
        if word in CONTENT and not demand.families & {"run"} and (_writes(demand) or not things & self._vocabulary):
            demand.content, self._spoken = True, True
            return "content"
        if families and not demand.families and self._before not in {"a", "an", "the", "any", "my", "of"}:
            demand.families |= families
            self.demand.verbs.append(word)
            self._verb = next((form for form in base_forms(word) if form in FAMILIES), word)
            self._light = bool(LIGHT & set(base_forms(word)))
            if things & {"email", "message"} & self._vocabulary:
                demand.things |= things & {"email"}
            return "verb"
        doing = {DOINGS[thing] for thing in things if thing in DOINGS}
        if doing and self._light and not demand.things and not demand.literals:
            demand.families |= doing
        if word in FILLERS:
            return "filler"
        if families and self._before in {"or", "and", "nor", ","} and not demand.things and not demand.literals:
            demand.families |= families
            return "verb"
        second = self._before in {"and", "or", "but", "then", "always"} or not things & self._vocabulary
        if families and demand.literals and second:
            return "unread"  # a second demand in one sentence
        if things & self._vocabulary:
            demand.things |= things & self._vocabulary
            return "thing"
        if "install" in demand.families and "package" in things:
            return "filler"
        if "run" in demand.families and "command" in things:
            return "filler"
        return "unread"


def _writes(demand: Demand) -> bool:
    return bool(demand.families & {"send", "post", "share", "mention", "write", "add"}) or not demand.families
