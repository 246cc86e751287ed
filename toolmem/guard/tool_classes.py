"""Classes of tools: what `Bash` here, `exec_command` there and a tool of tomorrow have in common.

A sentence that means a class, "never push to main", is kept once, under the class in place of a tool: `@shell`. It
binds every tool of the class, whichever agent has it. Which classes a tool is of, its agent says; else its name, as
the agents that are known call their tools; else its declared parameters; else the arguments of the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from toolmem.late import late_pattern
from toolmem.light_models import ToolSchema
from toolmem.readers.shell import looks_like_command

_MARK = "@"

# Class -> in words, in Chinese, and how a tool of the class is declared where nobody declares it.
_CLASSES: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "shell": (
        "every tool that runs commands",
        "所有运行命令的工具",
        "Run a shell command",
        {"command": "Command line"},
    ),
    "read": ("every tool that reads files", "所有读取文件的工具", "Read a file", {"path": "Path of the file"}),
    "write": (
        "every tool that writes files",
        "所有写入文件的工具",
        "Write or edit a file",
        {"path": "Path of the file", "content": "What is written"},
    ),
    "delete": (
        "every tool that deletes files",
        "所有删除文件的工具",
        "Delete a file",
        {"path": "Path of the file"},
    ),
    "fetch": (
        "every tool that fetches pages",
        "所有获取网页的工具",
        "Fetch a web page",
        {"url": "Address of the page"},
    ),
    "web": (
        "every tool that searches the web",
        "所有搜索网络的工具",
        "Search the web",
        {"query": "What is looked for"},
    ),
    "mail": (
        "every tool that sends e-mail",
        "所有发送邮件的工具",
        "Send an email",
        {"to": "Recipients", "cc": "Recipients", "bcc": "Recipients", "subject": "Subject", "body": "Text"},
    ),
    "chat": (
        "every tool that sends messages",
        "所有发送消息的工具",
        "Send a message",
        {"channel": "Channel", "recipient": "Recipient", "text": "Text"},
    ),
}
# The agents' own tools, in lower case. No class: a tool that no sentence on files, commands or the web is about.
_NAMES = {
    "shell": "bash shell exec_command local_shell shell_command unified_exec run_shell_command execute_command "
    "run_command run_terminal_cmd run_in_terminal powershell developer__shell execute_bash terminal write_stdin "
    "write_bash run_commands execute_shell_command bash_tool container.exec",
    "read": "read read_file read_many_files read_files notebookread view_image view developer__view readfile "
    "developer__read_image",
    "write": "write edit multiedit notebookedit write_file edit_file replace replace_in_file write_to_file apply_patch "
    "patch create_file create str_replace insert_edit_into_file search_replace new_file apply_diff editor "
    "strreplace tabwrite developer__write developer__edit",
    "read write": "text_editor developer__text_editor str_replace_editor str_replace_based_edit_tool",
    "delete": "delete delete_file delete_files remove_file remove_files",
    "fetch": "webfetch web_fetch fetch fetch_url fetch_webpage url_fetch fetch_web_content",
    "web": "websearch web_search google_web_search search_web",
    "mail": "send_email send_mail sendmail send_gmail gmail_send",
    "chat": "send_message send_direct_message send_channel_message post_message slack_send_message send_dm",
    "": "task agent todowrite todoread todo write_todos update_plan glob grep list ls list_directory list_dir "
    "search_files list_files grep_search search_file_content glob_file_search codebase_search exitplanmode "
    "enterplanmode askuserquestion ask_followup_question attempt_completion skill save_memory bashoutput killshell "
    "killbash read_bash stop_bash list_bash taskoutput taskstop question plan_mode_respond request_user_input "
    "slashcommand team_send_message team_broadcast",
}
_KNOWN = {name: tuple(classes.split()) for classes, names in _NAMES.items() for name in names.split()}
_OF_FILES = frozenset(("read", "write", "delete", "fetch"))  # classes whose names other tools have too
_COMMANDS = frozenset(("command", "cmd", "commands", "bash_command", "shell_command", "command_line"))
_PATHS = frozenset(("path", "paths", "file_path", "file_paths", "filepath", "filepaths", "file", "files", "filename"))
_PATHS |= frozenset(("notebook_path", "target_notebook", "target_file", "absolute_path", "include"))
_TEXTS = frozenset(("content", "contents", "text", "new_string", "new_str", "file_text", "diff", "patch", "edits"))
_WORD = late_pattern(r"[a-z]+")
_DELETES = late_pattern(r"^\*\*\* Delete File: ", re.MULTILINE)
_VERBS = {
    "read": frozenset(("read", "view", "open", "cat", "show")),
    "write": frozenset(("write", "edit", "create", "update", "replace", "append", "insert", "save", "patch", "modify")),
    "fetch": frozenset(("fetch", "open", "visit", "browse", "navigate", "scrape", "crawl", "read")),
    "delete": frozenset(("delete", "remove", "unlink")),
    "sends": frozenset(("send", "post", "reply", "forward")),
}
_MAIL, _CHAT = (
    frozenset(("email", "mail", "gmail", "emails")),
    frozenset(("message", "dm", "messages", "chat", "slack")),
)

CLASSES = tuple(_CLASSES)
SCOPES = tuple(_MARK + name for name in _CLASSES)


def scopes_of(
    tool_name: str, parameters: Mapping[str, Any] | None = None, arguments: Any = None, told: Sequence[str] = ()
) -> tuple[str, ...]:
    """The classes of a tool, as rules are kept under them. `told`: by its agent; `parameters`: its JSON schema;
    `arguments`: of one call, which may do less than the tool can."""
    classes = tuple(told) or _KNOWN.get(tool_name.strip().lower())
    given = arguments if isinstance(arguments, (dict, Mapping)) else {}
    declared = (parameters or {}).get("properties")
    declared = declared if isinstance(declared, Mapping) else None
    if classes is None or (not told and _OF_FILES & set(classes) and not _is_of_files(declared or given)):
        classes = _by_names(tool_name, declared, given)
    return tuple(_MARK + each for each in _done_by(classes, given) if each in _CLASSES)


def _is_of_files(given: Mapping[str, Any]) -> bool:
    """Might a call of `create`, `delete_file` or the like be on files, or on a page, and not on somebody's tickets?"""
    names = {str(name).lower() for name in given}
    return not names or bool(names & (_PATHS | {"url"})) or _patch_in(given) != ""


def _done_by(classes: Sequence[str], given: Mapping[str, Any]) -> tuple[str, ...]:
    """What a call does of what its tool can: an editor may only view, a patch may delete."""
    if "read" in classes and "write" in classes and "command" in given:
        views = given["command"] in ("view", "read")
        return tuple(each for each in classes if each != ("write" if views else "read"))
    if "write" in classes and "delete" not in classes and _DELETES.search(_patch_in(given)):
        return (*classes, "delete")
    return tuple(classes)


def _patch_in(given: Mapping[str, Any]) -> str:
    return next((each for each in given.values() if isinstance(each, str) and "*** " in each[:1000]), "")


def _by_names(tool_name: str, declared: Mapping[str, Any] | None, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """By the names of parameters and of the tool; a command beside a path is a verb of an editor."""
    given = arguments if declared is None else declared
    names = {str(name).lower() for name in given}
    words = _words_of(tool_name[:200])
    if names & _COMMANDS and not names & _PATHS and not _is_choice(given, names & _COMMANDS):
        return ("shell",) if declared is not None or _is_line(given, names & _COMMANDS) else ()
    if words & _VERBS["sends"] and words & (_MAIL | _CHAT):
        return ("mail",) if words & _MAIL else ("chat",)
    if "url" in names and words & _VERBS["fetch"] and not names & _TEXTS:
        return ("fetch",)
    if names & _PATHS and words & _VERBS["delete"] and not names & _TEXTS:
        return ("delete",)
    if names & _PATHS and words & _VERBS["write"] and names & _TEXTS:
        return ("write",)
    if names & _PATHS and words & _VERBS["read"] and not names & _TEXTS:
        return ("read",)
    return ("web",) if {"web", "search"} <= words and "query" in names else ()


@lru_cache(maxsize=256)  # the same few tools are asked about again and again
def _words_of(tool_name: str) -> frozenset[str]:
    return frozenset(_WORD.findall(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", tool_name).lower()))


def _is_choice(given: Mapping[str, Any], names: Iterable[str]) -> bool:
    """One of a few words, and no command line."""
    return any(isinstance(of, Mapping) and "enum" in of for name, of in given.items() if str(name).lower() in names)


def _is_line(given: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Is it written as a command line is? `play` is none."""
    lines = [of for name, of in given.items() if str(name).lower() in names]
    return any(
        isinstance(of, list) or (isinstance(of, str) and (" " in of.strip() or looks_like_command(of[:1000])))
        for of in lines
    )


def is_scope(tool_name: str) -> bool:
    """Does it stand for a class of tools?"""
    return tool_name.strip().lower() in SCOPES


def scope_in_words(scope: str, chinese: bool = False) -> str:
    """What a class is, for people."""
    english, in_chinese, _, _ = _CLASSES[scope.strip().lower().removeprefix(_MARK)]
    return in_chinese if chinese else english


def class_schema(scope: str) -> ToolSchema:
    """A tool of the class as any of them may be declared."""
    _, _, does, parameters = _CLASSES[scope.strip().lower().removeprefix(_MARK)]
    properties = {name: {"type": "string", "description": told} for name, told in parameters.items()}
    return ToolSchema(name=scope, description=does, parameters={"type": "object", "properties": properties})


def declared_as(tool: str | ToolSchema) -> ToolSchema:
    """A tool of which only the name is known, as its class declares it."""
    schema = tool if isinstance(tool, ToolSchema) else ToolSchema(name=tool)
    scopes = () if schema.parameters else scopes_of(schema.name)
    if len(scopes) != 1:
        return schema
    like = class_schema(scopes[0])
    return schema.model_copy(update={"description": like.description, "parameters": like.parameters})


def _is_agents(tool: ToolSchema) -> bool:
    """One of the agents' own tools, of which no sentence on files, commands or the web speaks."""
    return not tool.parameters and tool.name.lower() in _KNOWN


def by_class(tools: Iterable[str | ToolSchema]) -> list[ToolSchema]:
    """What a sentence may mean: every class there is, and the tools that are of none."""
    others = [each if isinstance(each, ToolSchema) else ToolSchema(name=each) for each in tools]
    kept = [each for each in others if not scopes_of(each.name, each.parameters) and not _is_agents(each)]
    return [*map(class_schema, SCOPES), *kept]
