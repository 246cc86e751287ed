"""`toolmem note`: keep a note of what the user demands, or lift a demand."""

from __future__ import annotations

import sys
from typing import Any, BinaryIO

import click

from toolmem.cli import options
from toolmem.cli.console import print_json, user_actor
from toolmem.operations import OPERATIONS
from toolmem.rules.notes import contract

_EXIT_CODES = {"kept": 0, "request": 1, "refused": 2}


@click.command(
    epilog="What agents are told of notes:\n\n\b\n" + contract().replace("\n\n", "\n\n\b\n")
)
@click.argument(
    "source",
    cls=options.Values,
    most=1,
    type=click.File("rb"),
    metavar="[SOURCE] [NAME=VALUE]...",
)
@click.option("--lift", is_flag=True, help="Take back the demand that `lifted` names.")
@click.option(
    "--said", multiple=True, help="Give a message that the user typed; may be given several times."
)
@options.conversation("Name the conversation in which the user said this.")
@click.option(
    "--tool", "tools", multiple=True, help="Name a tool of the agent; may be given several times."
)
@options.write_options
def note(
    source: BinaryIO | None,
    lift: bool,
    said: tuple[str, ...],
    conversation_id: str | None,
    tools: tuple[str, ...],
    **where: Any,
) -> None:
    """Keep a note of what the user demands.

    The note is a JSON object in the file SOURCE, or on standard input. Its fields are described
    below; with --lift, they are `quote` and `lifted` (the demand's words or a rule's id). The note
    becomes a rule if it agrees with --said. It waits for `toolmem rules approve` if --said is
    missing, or if a hook guards the store and you do not run this at a terminal. Exit code 0: kept;
    1: it waits; 2: refused, and the output says what to change.

    \b
    Example:
      echo '{"quote": "never touch prod", "effect": "remind", "tools": ["@shell"]}' \\
          | toolmem note --said "please never touch prod" --conversation c1
    """
    note = options.read_object(source or sys.stdin.buffer, "note" if source else "standard input")
    more: dict[str, Any] = {"user_message": list(said) or None, "conversation_id": conversation_id}
    operation = OPERATIONS["lift_demand" if lift else "note_demand"]
    if not lift:
        more["tools_available"] = list(tools) or None
    request: Any = operation.read({**note, **more})
    with options.open_memory(**where) as memory:
        if memory.rules.is_guarded() and user_actor().evidence != "terminal":
            request.user_message = None  # only the hook knows what the user typed
        done = operation.run(memory, request)
    fields = {name: getattr(done, name) for name in ("outcome", "told", "problems")}
    print_json({**fields, "rules": [rule.id for rule in done.rules]})
    sys.exit(_EXIT_CODES[done.outcome])
