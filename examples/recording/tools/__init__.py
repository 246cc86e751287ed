"""The tools of the recording, one module per subject. Each really runs: a query, a subprocess, an HTTP request.

`tool` says what a tool is; `sql`, `shell`, `files`, `http_client`, `convert`, `calculator`, `currency`, `calendar`,
`outbox`, `search` and `translate` are tools; `http_server`, `shop`, `scratch` and `corpus` are what they work on.
"""
