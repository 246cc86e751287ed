"""`read_file` and `write_file`: text files of the scratch folder."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from examples.recording.tools.tool import Answer, Arguments, Tool, Wording, done, failure, object_schema


def _inside(folder: Path, path: str) -> Path | None:
    """The real path, or None where it leads out of the folder."""
    real = (folder / path).resolve()
    return real if real.is_relative_to(folder.resolve()) else None


class ReadFile(Tool):
    name = "read_file"
    description = "Read a text file of the working folder, whole or some of its lines."
    parameters = object_schema(
        ("path",),
        path={"type": "string", "description": "Relative to the working folder."},
        start_line={"type": "integer", "minimum": 1, "maximum": 100000, "description": "First line, from 1."},
        end_line={"type": "integer", "minimum": 1, "maximum": 100000, "description": "Last line, included."},
    )
    wording: ClassVar[Wording] = "python"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, arguments: Arguments) -> Answer:
        path = arguments["path"]
        real = _inside(self._folder, path)
        if real is None:
            return failure(f"PermissionError: {path!r} is outside of the working folder")
        if real.is_dir():
            return failure(f"IsADirectoryError: [Errno 21] Is a directory: {path!r}")
        try:
            lines = real.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return failure(f"FileNotFoundError: [Errno 2] No such file or directory: {path!r}")
        except UnicodeDecodeError as error:
            return failure(f"UnicodeDecodeError: 'utf-8' codec can't decode byte at position {error.start} of {path!r}")
        first, last = int(arguments.get("start_line", 1)), int(arguments.get("end_line", len(lines)))
        if first > last:
            return failure(f"ValueError: start_line {first} is after end_line {last}; the file has {len(lines)} lines")
        return done("\n".join(lines[first - 1 : last]))


class WriteFile(Tool):
    name = "write_file"
    description = "Write a text file of the working folder. The folder of the file must exist."
    parameters = object_schema(
        ("path", "content"),
        path={"type": "string", "description": "Relative to the working folder."},
        content={"type": "string", "description": "The text."},
        mode={
            "type": "string",
            "enum": ["create", "overwrite", "append"],
            "default": "create",
            "description": "create refuses a file that exists.",
        },
    )
    wording: ClassVar[Wording] = "python"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, arguments: Arguments) -> Answer:
        path, content = arguments["path"], arguments["content"]
        real = _inside(self._folder, path)
        if real is None:
            return failure(f"PermissionError: {path!r} is outside of the working folder")
        mode = {"create": "x", "overwrite": "w", "append": "a"}[arguments.get("mode", "create")]
        try:
            with real.open(mode, encoding="utf-8", newline="\n") as file:
                file.write(content)
        except FileExistsError:
            return failure(f"FileExistsError: [Errno 17] File exists: {path!r}; use mode 'overwrite' or 'append'")
        except FileNotFoundError:
            return failure(f"FileNotFoundError: [Errno 2] No such file or directory: {path!r}")
        except IsADirectoryError:
            return failure(f"IsADirectoryError: [Errno 21] Is a directory: {path!r}")
        return done(f"wrote {len(content.encode())} bytes to {path}")
