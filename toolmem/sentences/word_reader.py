"""The words of a demand, one after the other: a verb, a thing, a literal, a name, a filler, or what is not understood.

Chinese has no spaces: the longest known word is taken at each place.
"""

from __future__ import annotations

from toolmem.guard.view import plain
from toolmem.late import late_pattern
from toolmem.readers.shell import looks_like_command
from toolmem.sentences.said_literals import MARKED, Demand, Literals, LiteralValue, take_literal
from toolmem.sentences.said_words import (
    BEFORE_NAMES,
    CONTENT,
    DOINGS,
    FAMILIES,
    FILLERS,
    LIGHT,
    NAMED_BEFORE,
    NAMING,
    NOT_NAMES,
    PREPOSITIONS,
    THINGS,
    TIMES,
    WRITING,
    base_forms,
    chinese_words,
    families_of,
    split,
    things_of,
)
from toolmem.sentences.split_text import CJK

_WORD = late_pattern(r"[\ue000-\uf8ff]|[A-Za-z][A-Za-z'’-]*|\d+|[\u3400-\u9fff]+|\S")
_OUTSIDE = late_pattern("(?:以外|之外|除外)$")
_SIGNS = frozenset(",():-–—'\".!")
_TO_WHOM = split("to with")
_CONTACTS = split("email e-mail mail message msg dm text contact notify call ping cc bcc")
_PLACES = split("channel user branch table folder environment service")
_OF_PLACES = split("push merge deploy read post fetch")  # "main" and "production" name a branch, an environment
_WRITES = split("send post share mention write add")
_SAYS_KIND = split("with the my a an id number named called our your")
_JOINS = frozenset(("or", "and", "nor", ","))
_LEXICON = frozenset(chinese_words((*FAMILIES, *THINGS, *CONTENT, *FILLERS)))
_LONGEST_WORD = max(map(len, _LEXICON))
_LONGEST_NAME = 12  # characters of a Chinese name


class WordReader:
    """Reads word after word into a demand; knows what stood before. `vocabulary`: what tools at hand speak of."""

    def __init__(self, demand: Demand, vocabulary: frozenset[str]) -> None:
        self.demand = demand
        self._vocabulary = vocabulary
        self._before = ""
        self._thing = ""  # the thing that the last words named, where a name may follow: "the channel private"
        self._names: list[str] = []
        self._spoken = False  # what is written, where no literal says it
        self._last = ""  # what the last word was taken for
        self._verb = ""
        self._direct = True  # no preposition has come since the verb
        self._to_whom = False  # the names stand after "to": "mention it to Bob"
        self._is_last = False  # the word that is read next ends the sentence
        self._light = False  # a verb that says less than its object: "make a payment"

    def read(self, text: str, marked: Literals) -> None:
        words = _WORD.findall(text)
        chinese = CJK.search(text) is not None
        for at, word in enumerate(words):
            self._is_last = at == len(words) - 1
            if chinese:
                self._in_chinese(word, marked, quoted=not self._is_last and bool(MARKED.match(words[at + 1])))
            elif MARKED.fullmatch(word):
                self._literal(*marked[word])
            elif word[0].isupper() and self._is_name(word, first=at == 0):
                self._name(word)
            elif word[0].isalpha():
                self._word(word.lower())
            elif word in _SIGNS:
                self._end_name()
            else:
                self._unread(word)
        self._end_name()
        if self._spoken:
            self._unread("what is written")
        if self.demand.force and not chinese and "push" not in self.demand.families:
            self._unread("force")

    def _unread(self, word: str) -> None:
        self.demand.unread.append(word)

    # ------------------------------------------------------------ literals and names

    def _literal(self, kind: str, text: str) -> None:
        self._end_name()
        self._last = "literal"
        if kind == "word" and text.isdigit() and not self._before_number:
            self._unread(text)
            return
        self._spoken = False
        before = self.demand.content
        written = self._direct and kind not in {"email", "channel", "user"} and self._verb in WRITING
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

    def _is_name(self, word: str, *, first: bool) -> bool:
        small = word.lower().removesuffix("'s")
        if small in NOT_NAMES or small in FILLERS or set(base_forms(small)) & TIMES:
            return False
        if things_of(small) & self._vocabulary and not self._names:
            return False
        return not first and not (families_of(small) and not self.demand.families)

    def _name(self, word: str) -> None:
        if self._before in {"in", "for", "during", "by", "about"} and not self._names:
            self._unread(word)
        elif word.endswith("'s"):
            self._unread(word)  # "Sarah's assistant" is somebody else
        else:
            self._to_whom = self._to_whom if self._names else self._before in _TO_WHOM
            self._names.append(word)
        self._before = word.lower()

    def _end_name(self) -> None:
        if self._names:
            mentioned = "mention" in self.demand.families and not self._to_whom
            content = self.demand.content or mentioned or (self._direct and self._verb in WRITING)
            self._take("name", plain(" ".join(self._names)), content=content)
            self._names, self._spoken = [], False

    def _take(self, kind: str, text: str, *, content: bool = False) -> None:
        self.demand.literals.append(LiteralValue(kind, text, content))

    # ------------------------------------------------------------ English words

    def _word(self, word: str) -> None:
        self._end_name()
        if word in PREPOSITIONS:
            self._direct = False
        if self._of_program(word):
            self._take("program", f"{self.demand.literals.pop().text} {word}")
            self._before, self._last = word, "literal"
            return
        role = self._role(word)
        if word in NAMED_BEFORE and self._last in {"thing", "unread"}:
            self._take_back(self._before)  # "the orders table"
        elif role == "unread":
            self._unknown(word)
        elif role == "thing":
            self._thing = next(iter(things_of(word) & self._vocabulary))
        elif word not in _SAYS_KIND:
            self._thing = ""
        self._before, self._last = word, role

    def _take_back(self, word: str) -> None:
        """The word before names the thing after it."""
        if word in self.demand.unread:
            self.demand.unread.remove(word)
        self.demand.things -= things_of(word)
        self._take("channel", word)

    def _unknown(self, word: str) -> None:
        """A word of which nothing is known: a name where one may stand, else a limit that is not understood."""
        families = self.demand.families
        is_time = bool(set(base_forms(word)) & TIMES)
        if not is_time and self._thing in _PLACES:
            self._take("channel", word)
        elif not is_time and families & {"push", "merge", "deploy"} and self._before in {"to", "into", "onto", "the"}:
            self._take("word", word)
        elif families & {"run"} and self._may_be_program(word):
            self._take("program", word)
        elif self._is_whom(word):
            self._names.append(word)
        else:
            self._unread(word)

    def _is_whom(self, word: str) -> bool:
        """ "never email sarah": right after the verb, the last word but for "ever again", and none of a language's."""
        contacts = "send" in self.demand.families and self._verb in _CONTACTS and not self.demand.literals
        return contacts and self._last == "verb" and self._is_last and word.isalpha() and not word.endswith("s")

    def _may_be_program(self, word: str) -> bool:
        """ "use curl", "use curl or wget"."""
        said = self.demand.literals
        if not said:
            return looks_like_command(word) or word in {"sudo", "doas", "su"}
        return self._before in _JOINS and all(each.kind == "program" for each in said)

    def _of_program(self, word: str) -> bool:
        """ "use pip install": what the program is to do."""
        said = self.demand.literals
        after = bool(said) and said[-1].kind == "program" and said[-1].text == self._before
        return after and word not in PREPOSITIONS and word not in FILLERS

    def _role(self, word: str) -> str:
        demand, families, things = self.demand, families_of(word), things_of(word)
        known = things & self._vocabulary
        if word in {"force", "force-push", "forcefully"}:
            demand.force = True
            demand.families |= {"push"} if word == "force-push" else set()
            return "verb"
        writes = not demand.families or bool(demand.families & _WRITES)
        if word in CONTENT and "run" not in demand.families and (writes or not known):
            demand.content, self._spoken = True, True
            return "content"
        if families and not demand.families and self._before not in {"a", "an", "the", "any", "my", "of"}:
            demand.families |= families
            demand.verbs.append(word)
            self._verb = next((form for form in base_forms(word) if form in FAMILIES), word)
            self._light = bool(LIGHT & set(base_forms(word)))
            demand.things |= known & {"email"}
            return "verb"
        doing = {DOINGS[thing] for thing in things if thing in DOINGS}
        if doing and self._light and not demand.things and not demand.literals:
            demand.families |= doing
        if word in FILLERS:
            return "filler"
        if families and self._before in _JOINS and not demand.things and not demand.literals:
            demand.families |= families
            return "verb"
        second = self._before in {"and", "or", "but", "then", "always"} or not known
        if families and demand.literals and second:
            return "unread"  # a second demand in one sentence
        if known:
            demand.things |= known
            return "thing"
        return "unread"

    # ------------------------------------------------------------ a Chinese sentence

    def _in_chinese(self, word: str, marked: Literals, *, quoted: bool) -> None:
        """`quoted`: a literal comes next."""
        if CJK.match(word):
            self._run(word, quoted=quoted)
            return
        if MARKED.match(word):
            take_literal(*marked[word], self.demand)
        elif word[0].isascii() and word[0].isalpha():
            self._english_in_chinese(word)
        elif word not in FILLERS:
            self._unread(word)
        self._before = word

    def _run(self, run: str, *, quoted: bool) -> None:
        at = 0
        while at < len(run):
            word, name = _known_at(run, at), _name_at(run, at)
            named = self._before in BEFORE_NAMES
            if word and not (named and len(word) == 1 and len(name) > 1 and _is_filler(word)):
                self._chinese(word, quoted=quoted and at + len(word) == len(run))
            else:
                word = name
                if named and not _OUTSIDE.search(name):
                    self._take("name", plain(name), content=self.demand.content)
                else:
                    self._unread(name)
            self._before = word
            at += len(word)

    def _chinese(self, word: str, *, quoted: bool) -> None:
        demand, families, things = self.demand, FAMILIES.get(word), THINGS.get(word, frozenset())
        if word == "强制":
            demand.force = True
        elif families:
            demand.verbs.append(word)
            demand.families |= families
            demand.content = demand.content or families == {"mention"}  # what follows is what is written
            named = {thing for thing, parts in NAMING.items() if any(part in word for part in parts.split())}
            demand.things |= named & self._vocabulary
        elif things and not _is_filler(word):
            demand.things |= things & self._vocabulary
            if not things & self._vocabulary and "branch" not in things:
                self._unread(word)
        elif word in CONTENT:
            if quoted:
                demand.content = True
            elif "push" not in demand.families:
                self._unread(word)

    def _english_in_chinese(self, word: str) -> None:
        demand, small = self.demand, word.lower()
        things = THINGS.get(small, frozenset((small,))) & self._vocabulary
        of_places = word[0].islower() and not demand.families - _OF_PLACES
        named = self._before in BEFORE_NAMES
        if things:
            demand.things |= things
        elif "run" in demand.families and not demand.literals and self._may_be_program(small):
            self._take("program", small)
        elif small in FAMILIES and not demand.families:
            demand.families |= FAMILIES[small]
        elif (named or demand.families & {"push", "merge"}) and of_places:
            self._take("word", plain(word))
        elif named or word[0].isupper():
            self._take("name", plain(word), content=demand.content)
        else:
            self._unread(word)


def _is_filler(word: str) -> bool:
    return word in FILLERS and word not in FAMILIES and word not in THINGS


def _known_at(run: str, at: int) -> str:
    return next((run[at : at + n] for n in range(_LONGEST_WORD, 0, -1) if run[at : at + n] in _LEXICON), "")


def _name_at(run: str, at: int) -> str:
    """The characters from `at` on up to the next known word: 王经理 in 给王经理发邮件."""
    end = at + 1
    while end < min(len(run), at + _LONGEST_NAME) and not _known_at(run, end):
        end += 1
    return run[at:end]
