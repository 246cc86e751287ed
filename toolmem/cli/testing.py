"""`toolmem testing serve`: a model service on this machine, to try things out on without paying."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolmem.cli.console import counted, say
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from toolmem.testing.model_script import Rule
    from toolmem.testing.model_server import ModelServer

INTERRUPTED = 130


def serve(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free one.")] = 8765,
    fail_every: Annotated[
        int, typer.Option("--fail-every", min=0, help="Every N-th request fails; the faults take turns.")
    ] = 0,
    share: Annotated[
        float | None,
        typer.Option("--fail-share", min=0.0, max=1.0, help="This share of all prompts fails, each time it is asked."),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option("--fault", help="How to fail; may be given several times. Default: server_error."),
    ] = None,
    latency: Annotated[float, typer.Option("--latency", min=0.0, help="Seconds that every answer takes.")] = 0.0,
    key: Annotated[str | None, typer.Option("--key", help="The only key that is let in. Default: any.")] = None,
) -> None:
    """Serve DashScope's protocol and OpenAI's (chat and embeddings, no streaming) on 127.0.0.1, until Ctrl-C.

    Stdout gets two lines: the base URL of the backend dashscope, and that of the backend openai_compatible. Replies
    are made up and always alike; usage is counted with Qwen's tokenizer.

    toolmem testing serve --port 8765

    toolmem testing serve --port 8765 --latency 0.2 --fail-every 5 --fault throttled --fault cut
    """
    from toolmem.testing.model_script import Script
    from toolmem.testing.model_server import ModelServer

    server = ModelServer(Script(_rules(fault or [], fail_every, share), latency=latency, key=key), port=port)
    try:
        server.start()
    except OSError as error:
        raise RequestError(f"--port: {port} cannot be had ({error.strerror or error})", field="port") from None
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background job is started with it ignored
    try:
        print(server.dashscope_url)
        print(server.openai_url, flush=True)
        say("the first address is for backend dashscope, the second for openai_compatible; Ctrl-C stops")
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    finally:
        server.stop()
        say(_served(server))


def _rules(faults: list[str], every: int, share: float | None) -> list[Rule]:
    from toolmem.config.nearest_names import hint
    from toolmem.testing.model_script import FAULTS, Rule

    for name in faults:
        if name not in FAULTS:
            raise RequestError(
                f"--fault: no fault is called {name!r} ({hint(name, FAULTS)}); there are {', '.join(FAULTS)}",
                field="fault",
            )
    if not faults and not every and share is None:
        return []
    if every and share is not None:
        raise RequestError("--fail-every and --fail-share: give one of them", field="fail_share")
    names = faults or ["server_error"]
    if share is not None:
        # Each fault takes its part of the prompts: the rules are asked in turn, the first that applies decides.
        return [Rule(FAULTS[name], share=share * (n + 1) / len(names)) for n, name in enumerate(names)]
    step = every or 1
    cycle = step * len(names)
    return [Rule(FAULTS[name], every=cycle, remainder=step * (n + 1) % cycle) for n, name in enumerate(names)]


def _stop(number: int, frame: Any) -> None:
    raise typer.Exit(0)


def _served(server: ModelServer) -> str:
    failed = sum(request.behaviour != "ok" for request in server.requests)
    tokens = sum(request.prompt_tokens for request in server.requests)
    served = counted(len(server.requests), "request")
    return f"served {served}, {failed:,} of them failed on purpose; {counted(tokens, 'prompt token')}"
