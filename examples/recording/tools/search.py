"""`search_documents`: title search with filters over the generated corpus. All its troubles come as polite JSON."""

from __future__ import annotations

import re
from typing import ClassVar

from examples.recording.tools.corpus import CATEGORIES, LANGUAGES, Document
from examples.recording.tools.tool import Answer, Arguments, Tool, Wording, done, failure, object_schema, to_json

TOO_MANY = 60
_STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "all",
        "any",
        "about",
        "for",
        "from",
        "in",
        "of",
        "on",
        "our",
        "the",
        "to",
        "what",
        "which",
        "with",
    ]
)


class SearchDocuments(Tool):
    name = "search_documents"
    description = (
        "Find documents whose title holds all words of the query. Narrow the search by language, category and year; "
        f"more than {TOO_MANY} matches are not listed."
    )
    parameters = object_schema(
        ("query",),
        query={"type": "string", "description": "A few telling words."},
        language={"type": "string", "description": f"One of {', '.join(LANGUAGES)}; all where it is left out."},
        category={"type": "string", "enum": list(CATEGORIES)},
        year_from={"type": "integer", "minimum": 2010, "maximum": 2026},
        top_k={"type": "integer", "minimum": 1, "maximum": 20, "default": 10},
    )
    wording: ClassVar[Wording] = "json"
    flags_bad_arguments = False

    def __init__(self, corpus: list[Document]) -> None:
        self._corpus = corpus

    def run(self, arguments: Arguments) -> Answer:
        language = arguments.get("language")
        if language is not None and language not in LANGUAGES:
            return _trouble(f"unsupported language '{language}'")
        words = _words(arguments["query"])
        if not words:
            return _trouble("the query holds no telling word")
        found = [
            document
            for document in self._corpus
            if all(word in document.title.lower() for word in words)
            and language in (None, document.language)
            and arguments.get("category", document.category) == document.category
            and document.year >= arguments.get("year_from", 0)
        ]
        if len(found) > TOO_MANY:
            return _trouble(f"too many matches ({len(found)}): add words or filters")
        shown = sorted(found, key=lambda document: (-document.year, document.doc_id))[: arguments.get("top_k", 10)]
        results = [
            {"id": document.doc_id, "title": document.title, "language": document.language, "year": document.year}
            for document in shown
        ]
        # Somebody who gets ten of more than twenty has not found anything yet.
        return done(to_json({"total": len(found), "results": results}), useful=0 < len(found) <= 20)


def _trouble(message: str) -> Answer:
    return failure(to_json({"error": message, "results": []}), success=True)


def _words(query: str) -> list[str]:
    """Words for Latin script, pairs of characters for Chinese."""
    words: list[str] = []
    for run in re.findall(r"[一-鿿]+|[^\W_]+", query.lower()):
        if "一" <= run[0] <= "鿿":
            words += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        elif run not in _STOP_WORDS:
            words.append(run)
    return words
