"""What a recorded tool is: a JSON schema, a check of its arguments, and a function that really does something."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Arguments = Mapping[str, Any]
Wording = Literal["python", "plain", "json"]  # how a tool complains about its arguments

_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered, and the truth about it."""

    output: str
    success: bool  # what the tool says of itself
    failed: bool  # the truth: the call did not do what it asked for
    useful: bool = True  # False: it ran, but the answer is worth nothing (empty, far too broad)
    fault: str | None = None  # trouble in the surroundings that no argument could have avoided


def done(output: str, *, useful: bool = True) -> Answer:
    """The call did what it asked for."""
    return Answer(output, success=True, failed=False, useful=useful)


def failure(output: str, *, success: bool = False, fault: str | None = None) -> Answer:
    """The call failed. `success=True`: the tool does not say so by its flag."""
    return Answer(output, success=success, failed=True, useful=False, fault=fault)


@dataclass(frozen=True, slots=True)
class Problem:
    """One argument that does not fit the tool's schema."""

    kind: Literal["unknown", "missing", "type", "enum", "range"]
    parameter: str
    text: str


def argument_problems(parameters: Mapping[str, Any], arguments: Arguments) -> list[Problem]:
    """What is wrong with the arguments by the schema: unknown names first, then missing ones, then values."""
    properties: Mapping[str, Mapping[str, Any]] = parameters.get("properties", {})
    problems = [Problem("unknown", name, "is not a parameter") for name in arguments if name not in properties]
    problems += [
        Problem("missing", name, "is required") for name in parameters.get("required", ()) if name not in arguments
    ]
    for name, value in arguments.items():
        if name in properties:
            problem = _value_problem(name, value, properties[name])
            if problem is not None:
                problems.append(problem)
    return problems


def _value_problem(name: str, value: Any, schema: Mapping[str, Any]) -> Problem | None:
    expected = str(schema["type"])
    right_type = isinstance(value, _JSON_TYPES[expected])
    if isinstance(value, bool) and expected != "boolean":
        right_type = False
    if not right_type:
        return Problem("type", name, f"must be {expected}, got {type(value).__name__} {value!r}")
    if "enum" in schema and value not in schema["enum"]:
        return Problem("enum", name, f"must be one of {', '.join(schema['enum'])}, got {value!r}")
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and value < low) or (high is not None and value > high):
        return Problem("range", name, f"must be between {low} and {high}, got {value!r}")
    return None


def _python_wording(tool_name: str, problem: Problem) -> str:
    """As a plain Python function complains."""
    if problem.kind == "unknown":
        return f"TypeError: {tool_name}() got an unexpected keyword argument {problem.parameter!r}"
    if problem.kind == "missing":
        return f"TypeError: {tool_name}() missing 1 required keyword argument: {problem.parameter!r}"
    name = "TypeError" if problem.kind == "type" else "ValueError"
    return f"{name}: {problem.parameter} {problem.text}"


def _plain_wording(tool_name: str, problem: Problem) -> str:
    """As a command line complains."""
    if problem.kind == "unknown":
        return f"Error: unknown parameter '{problem.parameter}'"
    if problem.kind == "missing":
        return f"Error: missing required parameter '{problem.parameter}'"
    return f"Error: parameter '{problem.parameter}' {problem.text}"


def _json_wording(tool_name: str, problem: Problem) -> str:
    """As a web service complains."""
    return to_json({"status": "error", "code": "invalid_argument", "message": f"{problem.parameter} {problem.text}"})


_WORDINGS: dict[Wording, Callable[[str, Problem], str]] = {
    "python": _python_wording,
    "plain": _plain_wording,
    "json": _json_wording,
}


def to_json(value: Any) -> str:
    """JSON on one line, Chinese kept readable."""
    return json.dumps(value, ensure_ascii=False)


class Tool:
    """A tool of the recording. Subclasses set the class variables and define `run`."""

    name: ClassVar[str]
    description: ClassVar[str]
    parameters: ClassVar[dict[str, Any]]  # JSON schema of the arguments
    wording: ClassVar[Wording] = "plain"
    flags_bad_arguments: ClassVar[bool] = True  # False: refused arguments come back under success=True

    def run(self, arguments: Arguments) -> Answer:
        """Do the work. The arguments fit the schema."""
        raise NotImplementedError

    def call(self, arguments: Arguments) -> Answer:
        """Check the arguments, then do the work."""
        problems = argument_problems(self.parameters, arguments)
        if problems:
            return failure(_WORDINGS[self.wording](self.name, problems[0]), success=not self.flags_bad_arguments)
        return self.run(arguments)

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """OpenAI function form."""
        return {
            "type": "function",
            "function": {"name": cls.name, "description": cls.description, "parameters": cls.parameters},
        }


def object_schema(required: tuple[str, ...], **properties: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema of an object that allows these properties only."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
