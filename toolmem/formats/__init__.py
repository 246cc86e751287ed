"""Read recordings of other programs into tool calls.

`recording` reads files and folders, one call after another. `sources` finds the files and splits
them into units, with the help of `files` for JSON Lines. `programs` describes the format of each
program (Claude Code, OpenTelemetry, ...) in the language of `shapes`; `spans` helps where a format
is irregular. `tool_names` gives tools in transcripts the names that hooks use. `joining` puts a
call and its answer into one record, `records` turns records into ToolCallResults. `chat` reads
conversations in OpenAI's form. `data_frames` makes pandas DataFrames, `csv_text` CSV that is safe
in a spreadsheet. `dump` writes and reads the tool memories of a workspace.
"""
