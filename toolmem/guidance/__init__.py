"""What works: judged calls of one tool become usage guidance.

In the order in which a window of calls meets them:

    outcomes       whether a call worked: its recorded flag, and what the judge saw; which calls belong together
    statistics     figures over calls, averages that leave out unknown values
    skip           the window of newest judged calls, and whether there is anything new in it
    policies       when a tool with new calls is summarized, and what the prompt holds
    llm_writer     guidance by a model, with `prompts.yaml`; `writer_reply` reads what it answers
    shown          guidance as an agent reads it: cleaned, said to be data, within a token budget
    proof          whether a line of a card helped: shown, followed, worked; withheld
    tool_memory    what an agent, a dump or a report gets of one tool

`counted` holds the data-driven writer, whose guidance is a card: every line is a claim with its counts and call ids.
`analysis` is what was found in a tool's calls, by modules of one subject each: `values` (what a parameter holds),
`conditions` (what is known of a call before it is made), `repairs` (how a call that worked differs from one that
failed), `value_patterns`. `repair_history` counts failures and repairs on from summary to summary, `changes` and
`shown_values` say what of a call may be shown, and whose value it is (`user_values`); `card_lines` makes the lines, in
the words of `phrases`.
"""
