"""A server with the tools, resources and prompts that the conformance suite asks for by name.

python conformance_server.py [PORT]   over HTTP, or over stdin
"""

from __future__ import annotations

import base64
import sys
from typing import Any, Literal

from mcp.server.mcpserver import Context, MCPServer, UserMessage
from mcp_types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

server = MCPServer("conformance")

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 40).decode()
WAV = base64.b64encode(b"RIFF\0\0\0\0WAVEfmt ").decode()


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _image() -> ImageContent:
    return ImageContent(type="image", data=PNG, mime_type="image/png")


def _resource(uri: str) -> EmbeddedResource:
    held = TextResourceContents(uri=uri, mime_type="text/plain", text="what stands in the resource")
    return EmbeddedResource(type="resource", resource=held)


@server.tool(description="As the conformance suite asks for it.")
def test_simple_text() -> str:
    return "This is a simple text response for testing."


@server.tool(description="As the conformance suite asks for it.")
def test_image_content() -> list[Any]:
    return [_image()]


@server.tool(description="As the conformance suite asks for it.")
def test_audio_content() -> list[Any]:
    return [AudioContent(type="audio", data=WAV, mime_type="audio/wav")]


@server.tool(description="As the conformance suite asks for it.")
def test_embedded_resource() -> list[Any]:
    return [_resource("test://embedded-resource")]


@server.tool(description="As the conformance suite asks for it.")
def test_multiple_content_types() -> list[Any]:
    mixed = _resource("test://mixed-content-resource")
    return [_text("text, an image and a resource"), _image(), mixed]


@server.tool(description="As the conformance suite asks for it.")
async def test_tool_with_logging(ctx: Context) -> str:
    for step in ("started", "going on", "done"):
        await ctx.info(step)
    return "logged"


@server.tool(description="As the conformance suite asks for it.")
def test_error_handling() -> str:
    raise ValueError("This tool intentionally returns an error for testing")


@server.tool(description="As the conformance suite asks for it.")
async def test_tool_with_progress(ctx: Context) -> str:
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
    return "done"


@server.tool(description="As the conformance suite asks for it.")
async def test_sampling(prompt: str, ctx: Context) -> str:
    asked = [SamplingMessage(role="user", content=_text(prompt))]
    answer = await ctx.session.create_message(messages=asked, max_tokens=100)
    return f"the model said {answer.content}"


class Information(BaseModel):
    """What a person fills in."""

    response: str = Field(description="The answer")


@server.tool(description="As the conformance suite asks for it.")
async def test_elicitation(message: str, ctx: Context) -> str:
    return f"the user: {(await ctx.elicit(message, schema=Information)).action}"


class Defaults(BaseModel):
    """With a default each."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@server.tool(description="As the conformance suite asks for it.")
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    return f"the user: {(await ctx.elicit('With defaults', schema=Defaults)).action}"


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    return base64.b64decode(PNG)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    return f'{{"id": "{id}", "data": "of {id}"}}'


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    return "watched"


@server.prompt(description="As the conformance suite asks for it.")
def test_simple_prompt() -> str:
    return "This is a simple prompt for testing."


@server.prompt(description="As the conformance suite asks for it.")
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt(description="As the conformance suite asks for it.")
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # as the suite names it
    return [UserMessage(_resource(resourceUri))]


@server.prompt(description="As the conformance suite asks for it.")
def test_prompt_with_image() -> list[Any]:
    return [UserMessage(_image())]


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
