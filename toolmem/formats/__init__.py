"""Read recordings of other programs into tool calls.

`recording` reads whole files: lines by `files`, records of calls by `records`, conversations in
OpenAI's form by `chat`. `dump` writes and reads the tool memories of a workspace.
"""
