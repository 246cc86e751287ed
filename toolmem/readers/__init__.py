"""What several packages read alike from text that nobody vouches for. Every reader takes linear time.

chat        messages of a conversation: turns, calls and their answers, texts and arguments
json_values what JSON can carry, checked and cleaned
error_messages  the line of an output that says what went wrong, and the line without its particulars
error_classes  what kind of error a message tells; its patterns stand in error_classes.txt
pattern_lists  patterns from text files
shell, sql  commands and statements, taken apart
prompt_templates, prompt_text  files of prompts with placeholders, and values as a prompt shows them
proportions Wilson's interval of a share
loopback    addresses that reach nobody but this machine
plain_text  names, values and texts as they may be shown
"""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text, for lists that are long and unordered."""
    return frozenset(text.split())
