"""The generated documents that `search_documents` finds: three languages, five categories."""

from __future__ import annotations

import random
from dataclasses import dataclass

CATEGORIES = ("engineering", "finance", "hr", "legal", "marketing")
LANGUAGES = ("en", "de", "zh")
SUBJECTS = {
    "en": ("tent poles", "boot soles", "stove valves", "lamp batteries", "pack straps", "label printer", "web shop"),
    "de": (
        "Zeltstangen",
        "Schuhsohlen",
        "Kocherventile",
        "Lampenakkus",
        "Rucksackgurte",
        "Etikettendrucker",
        "Webshop",
    ),
    "zh": ("帐篷支架", "登山鞋底", "炉具阀门", "灯具电池", "背包肩带", "标签打印机", "网上商店"),
}
ASPECTS = {
    "en": (
        "failure analysis",
        "cost estimate",
        "supplier contract",
        "training plan",
        "launch campaign",
        "error budget",
    ),
    "de": ("Fehleranalyse", "Kostenschätzung", "Liefervertrag", "Schulungsplan", "Kampagne", "Wartungsplan"),
    "zh": ("故障分析", "成本估算", "供应合同", "培训计划", "推广方案", "维护计划"),
}
_FORMS = {
    "en": ("report on {aspect} of {subject}", "{aspect} for {subject}, annual report", "notes on {subject}: {aspect}"),
    "de": ("Bericht: {aspect} {subject}", "{aspect} für {subject}", "Notizen zu {subject}: {aspect}"),
    "zh": ("{subject}{aspect}报告", "关于{subject}的{aspect}", "{subject}：{aspect}"),
}


@dataclass(frozen=True, slots=True)
class Document:
    doc_id: str
    title: str
    language: str
    category: str
    year: int


def build_corpus(rng: random.Random) -> list[Document]:
    """Some 330 documents; the same ones for the same `rng`."""
    documents: list[Document] = []
    for language, copies in (("en", 4), ("de", 2), ("zh", 2)):
        for subject in SUBJECTS[language]:
            for aspect in ASPECTS[language]:
                for _ in range(copies):
                    title = rng.choice(_FORMS[language]).format(subject=subject, aspect=aspect)
                    number = f"D{len(documents) + 1:03d}"
                    documents.append(
                        Document(number, title, language, rng.choice(CATEGORIES), rng.randrange(2016, 2027))
                    )
    return documents
