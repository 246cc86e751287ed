"""Searches for documents: too generic queries, unsupported languages, filters that are out of range."""

from __future__ import annotations

from examples.recording.agents import Slip, Step, Story, Talk
from examples.recording.tools.corpus import ASPECTS, CATEGORIES, SUBJECTS


def find_document(talk: Talk) -> Story:
    language = talk.pick(("zh", "zh", "en")) if talk.agent.language == "zh" else talk.pick(("en", "en", "en", "de"))
    place = talk.rng.randrange(6)
    subject, aspect = SUBJECTS[language][place], ASPECTS[language][talk.rng.randrange(6)]
    talk.ask(f"Find what we have on '{aspect}' of '{subject}'.", f"查找关于“{subject}”的“{aspect}”的文档。")
    query = subject + aspect if language == "zh" else f"{subject} {aspect}"
    right: dict[str, object] = {"query": query, "language": language}
    generic = {"en": "report", "de": "Bericht", "zh": "报告"}[language]
    broad = {"en": "notes", "de": "für", "zh": "关于"}[language]
    answer = yield from talk.attempt(
        "search_documents",
        right,
        (
            Slip("unknown_language", {**right, "language": "unknown"}, weight=6),
            Slip("unknown_language", {**right, "language": talk.pick(("auto", "english", "cn"))}, weight=1.5),
            Slip("too_generic_query", {"query": generic}, weight=3),
            Slip("too_generic_query", {"query": broad}, weight=1.5),
            Slip("too_generic_query", {"query": talk.pick(("a", "the", "all of it"))}, weight=0.7),
            Slip(
                "query_too_narrow",
                {**right, "query": f"{query} {talk.pick(('2019 final', 'summary PDF', 'version 7'))}"},
            ),
            Slip("out_of_range", {**right, "top_k": talk.pick((50, 100))}, weight=1.5),
            Slip("not_in_enum", {**right, "category": talk.pick(("tech", "Engineering", "all"))}),
            Slip("wrong_parameter_name", {"q": query, "lang": language}),
        ),
        risk=1.25,
    )
    if not answer.failed and talk.chance(0.25):
        right = {**right, "year_from": talk.pick((2019, 2021, 2023))}
        yield from talk.attempt(
            "search_documents", right, (Slip("wrong_type", {**right, "year_from": f"since {right['year_from']}"}),)
        )


def browse_category(talk: Talk) -> Story:
    category, subject = talk.pick(CATEGORIES), talk.pick(SUBJECTS["en"])
    talk.ask(
        f"What did {category} write about {subject} lately?", f"{category} 部门最近写了哪些关于 {subject} 的文档？"
    )
    yield from talk.attempt(
        "search_documents",
        {"query": subject, "category": category, "year_from": talk.pick((2018, 2020, 2022)), "top_k": 20},
        (
            Slip("too_generic_query", {"query": "report", "top_k": 20}, weight=2),
            Slip("out_of_range", {"query": subject, "category": category, "year_from": 1990}),
            Slip("unknown_language", {"query": subject, "language": "unknown"}, weight=2),
            Slip("missing_parameter", {"category": category}),
        ),
    )


def search_then_note(talk: Talk) -> Story:
    """A search, then what was found goes into a file."""
    place = talk.rng.randrange(6)
    subject, aspect = SUBJECTS["en"][place], ASPECTS["en"][place]
    talk.ask(
        f"Collect our documents on '{aspect}' of '{subject}' in a file.",
        f"把关于“{subject}”“{aspect}”的文档汇总到文件里。",
    )
    answer = yield from talk.attempt(
        "search_documents",
        {"query": f"{subject} {aspect}", "language": "en"},
        (
            Slip("unknown_language", {"query": f"{subject} {aspect}", "language": "unknown"}, weight=2),
            Slip("too_generic_query", {"query": "report on documents"}),
        ),
    )
    if answer.failed:
        return
    number = talk.world.facts["lists"] = talk.world.facts.get("lists", 0) + 1
    path = f"reports/list_{number:02d}.json"
    yield Step("write_file", {"path": path, "content": answer.output})
    if talk.chance(0.5):
        yield from talk.attempt(
            "read_file", {"path": path}, (Slip("wrong_path", {"path": path.removeprefix("reports/")}),), risk=0.8
        )
