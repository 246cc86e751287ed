"""Which paths are toolmem's own: its stores, the folders `.toolmem`, and those that the guard was told of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from toolmem.guard.view import plain, whole_path
from toolmem.late import late_pattern

OWN = ".toolmem"
_BESIDE = ("", "-wal", "-shm", "-journal")  # of a database
_HOME = late_pattern(r"^(?:~|\$home|\$\{home\})(?=/|$)")
_WORKING = late_pattern(r"^(?:\$pwd|\$\{pwd\})(?=/|$)")
_GLOB = late_pattern(r"[*?\[]")
_SAYS = late_pattern(r"^\..*[a-z]")  # a pattern that spells out some of `.toolmem`
_PARTS = late_pattern(r"[=:,]")
_LONGEST = 2_000  # characters of a path
_RUNS = late_pattern(r"(?:^|/)(?:python|pypy)[\d.]*(?:\.exe)?$")


class OwnPaths:
    """Compares paths of a call that runs in `directory` with those of `protected`."""

    def __init__(self, protected: Sequence[str], directory: Path | None) -> None:
        self._directory = directory
        self._files = tuple(whole_path(plain(path), None) for path in protected if "://" not in path)
        self._known: dict[str, bool] = {}
        self.servers = tuple(path for path in protected if "://" in path)

    def inside(self, path: str) -> bool:
        """Is it one of them, or below one?"""
        if path not in self._known:
            self._known[path] = self._inside(path)
        return self._known[path]

    def _inside(self, path: str) -> bool:
        whole = self._whole(path)
        if not whole:
            return False
        if _GLOB.search(whole):
            return self._fits(whole)
        return OWN in whole.split("/") or any(
            whole == f"{own}{more}" or whole.startswith(f"{own}/") for own in self._files for more in _BESIDE
        )

    def above(self, path: str) -> bool:
        """Does one of them lie below it?"""
        whole = self._whole(path)
        if not whole or whole in {"/", ".", ".."}:
            return bool(whole)
        return any(own.startswith(f"{whole}/") for own in self._below)

    @property
    def _below(self) -> tuple[str, ...]:
        """Where they are; nobody having said so, in the folder of the call."""
        here = self._whole(OWN)
        return self._files or ((here,) if here.startswith("/") else ())

    def named_in(self, text: str) -> bool:
        """Does a text hold the name of one of them? An interpreter is named by everything that it runs."""
        low = plain(text)
        return OWN in low or any(own in low for own in self._files if len(own) > 1 and not _RUNS.search(own))

    @property
    def names(self) -> frozenset[str]:
        """What the files are called."""
        return frozenset(("memory.db", *(own.rpartition("/")[2] for own in self._files)))

    def among(self, words: Sequence[str], *, runs: bool = False) -> Iterator[str]:
        """The words of a command that lead to one of them. `runs`: the command may only run an interpreter."""
        for word in words:
            if len(word) > _LONGEST or (runs and _RUNS.search(word)):
                continue
            if any(self.inside(part) for part in (word, *_PARTS.split(word)) if part):
                yield word

    def _whole(self, path: str) -> str:
        path = path.strip("\"' ")
        if not path or len(path) > _LONGEST or "\n" in path:
            return ""
        if path.startswith(("~", "$")):
            path = _HOME.sub(lambda _: plain(str(Path.home())), path)
            path = _WORKING.sub(".", path)
        return whole_path(path, self._directory)

    def _fits(self, pattern: str) -> bool:
        """Does a pattern of the shell fit one of them, or what it lies in?"""
        parts = pattern.split("/")
        if any(_SAYS.search(part) and fnmatchcase(OWN, part) for part in parts) or parts == [".*"]:
            return True
        known = (f"{file}{more}" for file in self._below for more in _BESIDE)
        return any(_fit(parts, own.split("/")) for own in known)


def _fit(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Do the parts of a pattern fit those with which a path begins? A `*` stands for no leading dot."""
    return len(pattern) <= len(path) and all(
        fnmatchcase(part, like) and (part.startswith(".") <= like.startswith("."))
        for like, part in zip(pattern, path, strict=False)
    )
