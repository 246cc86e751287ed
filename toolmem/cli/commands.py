"""All commands as one application."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import typer

from toolmem.cli import (
    evaluate,
    flows,
    guard_commands,
    guard_decisions,
    hook_commands,
    judge_compare,
    ledger,
    mcp,
    mcp_proxy,
    note_from_input,
    rules_capture,
    rules_commands,
    rules_export,
    rules_import,
    rules_review,
    serve,
    store,
    testing,
    tools_commands,
)
from toolmem.cli.console import AsJson, Config, Overrides, counted, logs_to_stderr, print_json, print_table
from toolmem.hosts.host import HOSTS


def check(overrides: Overrides = None, config: Config = None) -> None:
    """Read the configuration, report every problem at once, run nothing. Exit code 2 where there is one.

    toolmem config check --config my.yaml op.summary_tool_memory_op.params.recent_call_count=50
    """
    from toolmem.app import ToolMemApp

    with logs_to_stderr():
        app = ToolMemApp(config, overrides or ())
        app.check_prompts()
    left_out = app.configured.left_out
    for name, reason in sorted(left_out.items()):
        print(f"left out: {name}: {reason}")
    print(f"the configuration is good: {counted(len(app.flows), 'flow')} ({', '.join(sorted(app.flows))})")


def show(overrides: Overrides = None, config: Config = None, as_json: AsJson = False) -> None:
    """Print every effective value with its origin. Secrets are shown as ***.

    toolmem config show llm.default.backend=dry_run
    """
    from toolmem.app import ToolMemApp
    from toolmem.flow.effective import effective

    with logs_to_stderr():
        app = ToolMemApp(config, overrides or ())
    rows = effective(app.configured)
    if as_json:
        print_json([{"name": name, "value": value, "origin": str(origin)} for name, value, origin in rows])
        return
    print_table("Configuration", ("name", "value", "origin"), [(n, str(v), str(o)) for n, v, o in rows])


app = typer.Typer(
    name="toolmem",
    help="Tool memory for LLM agents: what works, and what the user demands.",
    epilog=(
        "Examples:  toolmem evaluate  |  toolmem evaluate --input calls.jsonl.gz --out report  |  "
        "toolmem run retrieve_tool_memory --request request.json  |  toolmem config show"
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _group(name: str, about: str, commands: Mapping[str, Callable[..., None]]) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, help=about)
    group.callback()(lambda: None)  # a group of one command would be that command
    for each, command in commands.items():
        group.command(each)(command)
    app.add_typer(group, name=name)
    return group


evaluate.add_to(app)
app.command("run", short_help="Run one flow or operation on a JSON request.")(flows.run)
_group(
    "tools",
    "The tools of a workspace: figures and guidance.",
    {"list": tools_commands.list_, "show": tools_commands.show},
)
_group(
    "rules",
    "Rules for tools: list, show, add, review, approve, delete, prompt, export, import.",
    {
        "list": rules_commands.list_,
        "show": rules_commands.show,
        "add": rules_commands.add,
        "review": rules_review.review,
        "approve": rules_review.approve,
        "reject": rules_review.reject,
        "restore": rules_review.restore,
        "delete": rules_commands.delete,
        "prompt": rules_commands.prompt,
        "capture": rules_capture.capture,
        "export": rules_export.export,
        "import": rules_import.import_,
    },
)
_group(
    "guard",
    "What the guard says to calls, said, and would have said: rules, and failures that are about to be repeated.",
    {"check": guard_decisions.check, "log": guard_decisions.log, "replay": guard_commands.replay},
)
_hooks = _group(
    "hook",
    "Hooks in the agents that you run: install, look after, take out again.",
    {
        "install": hook_commands.install,
        "uninstall": hook_commands.uninstall,
        "doctor": hook_commands.doctor,
        "status": hook_commands.status,
    },
)
for _agent in HOSTS:
    _any = {"allow_extra_args": True, "ignore_unknown_options": True}
    _hooks.command(_agent, hidden=True, context_settings=_any)(hook_commands.of_agent(_agent))
app.command("note", add_help_option=False, short_help="Note a demand of the user; JSON from standard input.")(
    note_from_input.note
)
judge_compare.add_to(app)
ledger.add_to(app)
_group("config", "Check a configuration, or show every value with its origin.", {"check": check, "show": show})
_group(
    "store",
    "Look at a store, copy it, embed it again, import ReMe's dumps.",
    {
        "info": store.info,
        "copy": store.copy,
        "reembed": store.reembed,
        "import": store.import_,
        "trust": store.trust,
    },
)
app.command("serve", short_help="Serve the flows over HTTP.")(serve.serve)
app.command("mcp", short_help="Serve flows, rules and guidance to an MCP host.")(mcp.mcp)
app.command("mcp proxy", short_help="Stand between an MCP host and one of its servers: guard, record, advise.")(
    mcp_proxy.proxy
)
app.command("mcp wrap", short_help="Put the proxy before one server in a host's configuration.")(mcp_proxy.wrap)
app.command("mcp unwrap", short_help="Take the proxy out of a host's configuration again.")(mcp_proxy.unwrap)
_group("testing", "A loopback model server, to try out real backends without paying.", {"serve": testing.serve})


@app.callback(invoke_without_command=True)
def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
    debug: bool = typer.Option(False, "--debug", help="Show where an op raised an error of its own. Anywhere."),
) -> None:
    if version:
        from toolmem import __version__

        print(__version__)
        raise typer.Exit


def option_names() -> list[str]:
    """Every option of every command, so that `--out=DIR` is never taken for an override."""
    group = typer.main.get_command(app)
    found: list[str] = []
    waiting = [group]
    while waiting:
        command = waiting.pop()
        found += [name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)]
        waiting += getattr(command, "commands", {}).values()
    return found


# ---------------------------------------------------------------- dotted overrides, as ReMe users write them
# toolmem run add_tool_call_result llm.default.model_name=qwen-plus --op.summary_tool_memory_op.params.force=true
# toolmem backend=http http.port=8002 config=my.yaml


# Commands of two words; `toolmem mcp` itself takes overrides.
OF_MCP = frozenset({"mcp proxy", "mcp wrap", "mcp unwrap"})


def arrange(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """The arguments as the command line's parser takes them.

    Overrides lose leading dashes and go behind everything else, `config=FILE` becomes `--config FILE`, and a call
    that begins with an override or a file (`toolmem backend=http ...`) is one of `serve` (`backend=mcp ...`: of `mcp`).
    `options`: names of the commands' own options (`--out`), which win. What stands behind `--` is left alone.
    """
    if arguments[:1] == ["mcp"] and " ".join(arguments[:2]) in OF_MCP:
        return [" ".join(arguments[:2]), *arguments[2:]]  # what stands behind is another program's
    if not any("=" in argument for argument in arguments):
        return list(arguments)
    from toolmem.config import split_overrides

    files, overrides, rest = split_overrides(arguments, options)
    meant = "mcp" if _backend(overrides) == "mcp" else "serve"
    command = [] if rest and not rest[0].startswith("-") else [meant] if overrides or files else []
    configs = [part for file in files for part in ("--config", file)]
    if "--" in rest:
        at = rest.index("--")
        return [*command, *rest[:at], *configs, *overrides, *rest[at + 1 :]]
    return [*command, *rest, *configs, *overrides]


def _backend(overrides: Sequence[str]) -> str:
    given = [item.partition("=")[2] for item in overrides if item.startswith("backend=")]
    return given[-1] if given else ""
