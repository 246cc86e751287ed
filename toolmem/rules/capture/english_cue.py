"""What a cue is, and the fragments that the tables of cues share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from toolmem.rules.capture.english_duration import Strength


@dataclass(frozen=True, slots=True)
class Cue:
    """A form, and where in a sentence it is addressed to the agent."""

    pattern: re.Pattern[str]  # its group "verb", where it has one, is the verb of the demand
    strength: Strength
    placed: Callable[[str, int], bool]  # (sentence in small letters, position)
    base_verb: bool = False  # the verb must be one that an agent is told in its base form
    needs_tool: bool = False  # means anything only where the sentence names a tool
    acting: bool = False  # the verb must be one of those that agents act by
    asks: bool = False  # "ask me before ...": what is asked about may stand for the tool
    subject_is_tool: bool = False  # "the camera must not ...": the subject must be a tool, else it is a third party


def cue(
    strength: Strength,
    placed: Callable[[str, int], bool],
    *parts: str,
    base_verb: bool = False,
    needs_tool: bool = False,
    acting: bool = False,
    asks: bool = False,
    subject_is_tool: bool = False,
) -> Cue:
    pattern = re.compile(_as_in_chat("".join(parts)))
    return Cue(pattern, strength, placed, base_verb, needs_tool, acting, asks, subject_is_tool)


_IN_CHAT = {"you": "u|ya", "before": "b4", "without": "w/o", "please": "pls|plz"}  # what people type for it
_SHORTENED = re.compile(rf"(?:(?<=\\b)|(?<![a-z\\]))({'|'.join(_IN_CHAT)})(?![a-z'*+?])")


def _as_in_chat(pattern: str) -> str:
    return _SHORTENED.sub(lambda word: f"(?:{word[1]}|{_IN_CHAT[word[1]]})", pattern)


def any_of(*parts: str) -> str:
    return f"(?:{'|'.join(parts)})"


I = r"\b(?:i|we)(?: (?:really|absolutely|definitely|strictly|simply|certainly|also|just|honestly))*"  # noqa: E741
WOULD = r"(?:'d| would)(?: really| much| strongly)?"
DO_NOT = r"(?:do not|don't|dont|donot|do n't|dnt|don´t|do'nt|don t)"
NOT = r"(?:not|never|no longer)"
ADVERBS = (
    r"(?:(?:again|ever|please|just|simply|even|also|automatically|blindly|secretly|silently|quietly|directly"
    r"|accidentally"
    r"|immediately|actually|really|knowingly|needlessly|unnecessarily|randomly|try to|attempt to|go and|go ahead and"
    r"|dare(?: to)?"
    r"|bother to|under any circumstances|in any case|at any time|on your own|by yourself|without asking),?\s+)*"
)
VERB = r"(?P<verb>[a-z][a-z'/_-]*+)"
ING = r"(?P<verb>(?!(?:some|any|every|no)thing)[a-z]+(?:-[a-z]+)?ing)\b"
DONE = (
    r"(?:[a-z]+(?:ed|en|wn|nt|ught|ut)|run|read|set|put|shut|sold|told|done|made|paid|kept|hit|cut|reset|overwritten"
    r"|sent"
    r"|spent|held)\b"
)
PASSIVE = rf"(?:be|get|being|getting) (?P<verb>(?:[a-z]+ ){{0,2}}?{DONE}|put through|touched)"
LEAVE = (
    r"(?:ok|okay|approval|permission|consent|confirmation|go[- ]ahead|sign[- ]?off|yes|word|say[- ]so|agreement"
    r"|blessing|green light"
    r"|authori[sz]ation|signature|thumbs[- ]up|nod|approving|say)"
)
