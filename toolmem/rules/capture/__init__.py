"""From what a user said to rules: `hook` reads a turn, `decrees` finds the instructions in its sentences.

A message meets, in this order: `pasted` and `shown_text` (what is not the user's own), `sentences`, the cues of English
and Chinese, `tool_words` and `which_tools` (which of the tools at hand are meant). `failures` finds what kept failing.
"""
