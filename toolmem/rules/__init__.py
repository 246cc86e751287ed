"""Rules: what a user demands of the agent's tools, kept per tool and pinned to every prompt.

Path of a demand: `capture` finds it in a user's message, sentence by sentence, and says on which tools; its hook
makes a rule of it, the rule store keeps it, and the prompt section shows it at every later turn.
"""
