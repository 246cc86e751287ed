"""Read recordings of other programs into tool calls.

`recording` reads files and folders, one call after another. `sources` finds the files and splits
them into units, with the help of `files` for JSON Lines. `programs` describes the format of each
program (Claude Code, OpenTelemetry, ...) in the language of `shapes`; `spans` helps where a format
is irregular. `tool_names` has the names that an agent's hooks and its transcripts share. `joining`
makes records of calls and their answers, and `records` makes ToolCallResults of them. `chat` reads
conversations in OpenAI's form. `data_frames` makes pandas DataFrames, `csv_text` CSV that a
spreadsheet may open. `dump` writes and reads the tool memories of a workspace.
"""
