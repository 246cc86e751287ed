"""`toolmem config check` and `toolmem config show`."""

from __future__ import annotations

import typer

from toolmem.cli.console import AsJson, Config, Overrides, counted, logs_to_stderr, print_json, print_table


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Check a configuration, or show every value with its origin.")
    group.command("check")(check)
    group.command("show")(show)
    app.add_typer(group, name="config")


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
