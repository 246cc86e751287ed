"""From what a user said to rules: `hook` reads a turn, `instructions` finds what its sentences forbid or bound.

Sentences are read by `toolmem.sentences`: what is not the user's own (`shown_text`), what is demanded and for how long
(`demanding`), of which tools (`tools_meant`), what is taken back (`taken_back`). `repeated_failures` finds what kept
failing.
"""
