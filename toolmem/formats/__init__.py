"""Read recordings of other programs into tool calls.

`recording` reads files and folders, one call after another: `sources` finds the files and splits
them into units (`files`: JSON Lines), `catalogue` describes each format by `shapes`, with the help
of `spans` where it is irregular, `joining` makes records of asked calls and answers, and `records`
makes calls of them. `chat` reads conversations in OpenAI's form, `agents` finds transcripts in a
home. `dump` writes and reads the tool memories of a workspace.
"""
