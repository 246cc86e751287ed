"""`toolmem testing`: a stand-in for a paid model."""

from __future__ import annotations

import click

from toolmem.testing.faults import FAULTS, Fault
from toolmem.testing.model_server import ModelServer


@click.group()
def testing() -> None:
    """Serve a stand-in for a paid model, for tests."""


@testing.command()
@click.option(
    "--port",
    default=8089,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="Listen on this port; 0 is any free one.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    type=click.Choice(sorted(FAULTS)),
    help="Answer with this fault, always or by --every or --share; may be given several times.",
)
@click.option("--every", default=0, type=click.IntRange(0), help="Let every n-th request fail.")
@click.option(
    "--share", default=0.0, type=click.FloatRange(0, 1), help="Let this share of the prompts fail."
)
@click.option(
    "--latency",
    default=0.0,
    type=click.FloatRange(0),
    help="Wait this many seconds before each answer.",
)
@click.option("--key", default="", help="Refuse requests without this API key.")
def serve(
    port: int, faults: tuple[str, ...], every: int, share: float, latency: float, key: str
) -> None:
    """Serve a stand-in for the models of DashScope and OpenAI.

    It prints the settings to use it. The same prompt always gets the same reply. Ctrl-C stops it.

    \b
    Examples:
      toolmem testing serve
      toolmem testing serve --fault server_error --every 5
      toolmem evaluate llm.default.backend=openai_compatible \\
          llm.default.params.base_url=http://127.0.0.1:8089/v1 llm.default.model_name=any
    """
    chosen = [Fault(name, every=every, share=share) for name in faults]
    try:
        server = ModelServer(chosen, key=key, latency=latency, port=port)
    except OSError as error:
        raise click.UsageError(f"--port: {port} cannot be used ({error.strerror})") from error
    with server:
        click.echo(f"OpenAI:    llm.default.params.base_url={server.openai_url}")
        click.echo(f"DashScope: llm.default.params.base_url={server.dashscope_url}")
        server.stopping.wait()
