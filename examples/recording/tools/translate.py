"""`translate_text`: word by word with a small glossary, longest phrase first. No model is involved."""

from __future__ import annotations

import re
from typing import ClassVar

from examples.recording.tools.tool import Answer, Arguments, Tool, Wording, done, failure, object_schema, to_json

LANGUAGES = ("en", "de", "fr", "zh")
MAX_CHARACTERS = 200
# Columns: en, de, fr, zh.
_GLOSSARY = (
    ("good morning", "guten Morgen", "bonjour", "早上好"),
    ("thank you", "danke", "merci", "谢谢"),
    ("the order", "die Bestellung", "la commande", "订单"),
    ("the tent", "das Zelt", "la tente", "帐篷"),
    ("the lamp", "die Lampe", "la lampe", "灯"),
    ("the stove", "der Kocher", "le réchaud", "炉子"),
    ("the invoice", "die Rechnung", "la facture", "发票"),
    ("the meeting", "das Treffen", "la réunion", "会议"),
    ("the warehouse", "das Lager", "l'entrepôt", "仓库"),
    ("the customer", "der Kunde", "le client", "客户"),
    ("is late", "ist verspätet", "est en retard", "迟到了"),
    ("is ready", "ist fertig", "est prêt", "准备好了"),
    ("is broken", "ist kaputt", "est cassé", "坏了"),
    ("is closed", "ist geschlossen", "est fermé", "关闭了"),
    ("please", "bitte", "s'il vous plaît", "请"),
    ("tomorrow", "morgen", "demain", "明天"),
    ("today", "heute", "aujourd'hui", "今天"),
    ("on monday", "am Montag", "lundi", "星期一"),
    ("on friday", "am Freitag", "vendredi", "星期五"),
    ("and", "und", "et", "和"),
    ("the error", "der Fehler", "l'erreur", "错误"),
    ("was repaired", "wurde behoben", "a été réparé", "修好了"),
    ("we send", "wir schicken", "nous envoyons", "我们寄"),
    ("we need", "wir brauchen", "nous avons besoin de", "我们需要"),
)


class TranslateText(Tool):
    name = "translate_text"
    description = "Translate a short text (up to 200 characters) with the house glossary."
    parameters = object_schema(
        ("text", "source_language", "target_language"),
        text={"type": "string"},
        source_language={"type": "string", "description": f"One of {', '.join(LANGUAGES)}."},
        target_language={"type": "string", "description": f"One of {', '.join(LANGUAGES)}."},
    )
    wording: ClassVar[Wording] = "plain"
    flags_bad_arguments = False

    def run(self, arguments: Arguments) -> Answer:
        text, source, target = arguments["text"], arguments["source_language"], arguments["target_language"]
        for side, language in (("source", source), ("target", target)):
            if language not in LANGUAGES:
                known = ", ".join(LANGUAGES)
                return failure(f"[translation failed] {side} language '{language}' is not one of {known}", success=True)
        if len(text) > MAX_CHARACTERS:
            return failure(
                f"[translation failed] text has {len(text)} characters, limit {MAX_CHARACTERS}", success=True
            )
        translation, known_share = _translate(text, LANGUAGES.index(source), LANGUAGES.index(target))
        answer = to_json({"translation": translation, "coverage": known_share})
        return done(answer, useful=known_share >= 0.5)


def _translate(text: str, source: int, target: int) -> tuple[str, float]:
    """The translation (unknown words kept in brackets) and the share of the text's letters that was known."""
    entries = sorted(_GLOSSARY, key=lambda entry: -len(entry[source]))
    parts: list[str] = []
    known = letters = 0
    rest = text.strip()
    while rest:
        entry = next((e for e in entries if _begins(rest, e[source])), None)
        if entry is not None:
            word, replaced = entry[source], entry[target]
            known += len(word)
        else:
            match = re.match(r"[一-鿿]|[^\W一-鿿]+|\W", rest)
            word = match[0] if match is not None else rest[0]
            replaced = f"[{word}]" if word.isalnum() else word
        letters += len(word) if word.strip(" ,.!?。，") else 0
        if replaced.strip():
            parts.append(replaced)
        rest = rest[len(word) :].lstrip()
    joined = ("" if LANGUAGES[target] == "zh" else " ").join(parts)
    return re.sub(r" ([,.!?])", r"\1", joined), round(known / letters, 2) if letters else 0.0


def _begins(text: str, phrase: str) -> bool:
    if not text.lower().startswith(phrase.lower()):
        return False
    after = text[len(phrase) : len(phrase) + 1]
    return phrase[0] >= "一" or not after.isalpha()
