"""What the flows take."""

from __future__ import annotations

from page_writers.markdown import page
from page_writers.ops import flow_tables

_HEAD = """\
What each flow takes. The same JSON goes through `toolmem run FLOW --request FILE`, through
`app.run(FLOW, **request)` in Python, and over HTTP, where `/docs` tries it out. Each is answered with a FlowResponse.
Written by `python docs/generate.py`.
"""


def flows() -> str:
    return page("Requests and responses", _HEAD, flow_tables())
