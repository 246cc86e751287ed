"""Chinese sentences: is this a demand on what the agent does, and for how long?

A sentence is read clause by clause. A cue (永远不要, 别, 禁止, 只能, 必须先 ...) counts where nobody but the agent can
be its subject, and where its characters are not part of another word (别墅, 不要紧, 特别).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolmem.rules.capture.cues import TABLES, Cue, CueReading, Grammar, Kind
from toolmem.rules.capture.sentences import Sentence

CHINESE = Grammar(TABLES["zh"])
FORM = CHINESE.forms


def read_chinese(sentence: Sentence) -> list[tuple[Cue, CueReading]]:
    """What each cue reads in a Chinese sentence."""
    text = FORM["tag_question"].sub("", sentence.masked)
    asked = (sentence.question and text == sentence.masked) or bool(FORM["question"].search(text))
    if asked and not FORM["polite_question"].search(text):
        return []
    cues = CHINESE.cues_in(text)
    if not cues or FORM["supposed"].match(text) or FORM["told_after"].search(text):
        return []
    return list(_readings(cues, text))


def opens_shown_chinese(lead: str) -> bool:
    """Does what stands before a colon open a text to be written, or somebody else's words?"""
    own = FORM["own_words"].search(lead)
    return bool(FORM["opens_task"].match(lead) or (FORM["opens_shown"].search(lead) and not own))


def _readings(cues: Sequence[Cue], text: str) -> Iterator[tuple[Cue, CueReading]]:
    condition = task = spec = False
    for clause in FORM["clause"].finditer(text):
        words = clause[0]
        if (task and FORM["its_text"].match(words)) or (spec and not FORM["agent"].search(words)):
            return
        task = task or bool(FORM["opens_task"].match(words))
        spec = spec or bool(FORM["spec"].match(words))
        condition = condition or bool(FORM["condition"].match(words))
        if _behind_shown_colon(text, clause.start()):
            return
        if FORM["revoked"].search(words) or FORM["asked"].search(words):
            continue
        for cue in cues:
            match = cue.pattern.search(words)
            if match is None or (condition and cue.strength in ("plain", "now")):
                continue  # 如果找不到，不要放弃: about this one case
            if _to_the_agent(words, match) and not _only_unable(text, clause.start(), match[0]):
                yield cue, _reading(cue, text, clause, match)


def _reading(cue: Cue, text: str, clause: re.Match[str], match: re.Match[str]) -> CueReading:
    words, rest, strength = clause[0], clause[0][match.end() :], cue.strength
    again = strength in ("firm", "rule", "ever") and FORM["again_like_that"].search(words)
    needs_tool = "tool" in cue.needs or bool(FORM["style"].search(words)) or not (FORM["acts"].search(words) or again)
    needs_tool = needs_tool or (strength in ("bound", "rule") and not _addressed(words[: match.start()].strip()))
    if FORM["tell_me"].search(match[0]) and not FORM["over_and_over"].search(words):
        needs_tool = True  # 你得先告诉我价格
    kind = _kind(strength, text, words, rest)
    if strength == "plain" and _corrected(rest, text[clause.end() :]):
        kind = "session"
    before = text[: clause.start()]
    topic = _topic_before(before)
    by_itself = needs_tool and strength in ("plain", "firm") and topic == len(before)
    by_itself = by_itself and not FORM["set_against"].search(before)
    return CueReading(kind, topic, clause.start() + match.start(), clause.end(), needs_tool, by_itself)


def _kind(strength: str, text: str, words: str, rest: str) -> Kind:
    parts = {"sentence": FORM["address"].sub(" ", text), "clause": FORM["address"].sub(" ", words), "rest": rest}
    return "session" if CHINESE.decide("duration", parts, strength) == "session" else "standing"


def _only_unable(text: str, clause: int, found: str) -> bool:
    """文件太大了，不能用邮件发: a fact, not a ban."""
    if FORM["unable"].search(found) and FORM["failed"].search(text):
        return True
    return bool(FORM["unable"].match(found)) and clause > 0 and not FORM["set_against"].search(text[:clause])


def _corrected(forbidden: str, following: str) -> bool:
    """不要安排在三号会议室，安排在五号: how this one thing is to be done instead."""
    verb = FORM["bare_verb"].match(forbidden)
    return verb is not None and bool(re.match(rf"[，,]\s*(?:就|请|要|给我|而是)?(?:{verb[1]}|换|改)", following))


def _topic_before(before: str) -> int:
    """Where the topic of a clause begins that stands before a comma: 超过一百元的退款，不许 ..."""
    topic = FORM["topic_before"].search(before)
    return topic.start(1) if topic is not None and not FORM["not_a_topic"].search(topic[1]) else len(before)


def _behind_shown_colon(text: str, position: int) -> bool:
    return any(opens_shown_chinese(text[: colon.start()]) for colon in FORM["colon"].finditer(text[:position]))


def _addressed(before: str) -> bool:
    """Nothing stands before a ban that could make it a fact: 酒店禁止带宠物, 会议只能改到下周."""
    return not before or any(FORM[form].search(before) for form in ("agent", "acts", "general"))


def _to_the_agent(words: str, match: re.Match[str]) -> bool:
    """Nobody else is the subject, and nobody else is told."""
    before = words[: match.start()].rstrip()
    lead = FORM["lead_in"].sub("", before) or before
    parts = {"match": match[0], "clause": words, "before": before, "lead": lead, "rest": words[match.end() :]}
    return CHINESE.decide("to_the_agent", parts) != "no"
