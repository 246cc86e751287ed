"""What works: judged calls of one tool become usage guidance.

In the order in which a window of calls meets them:

    outcomes       whether a call worked: its recorded flag, and what the judge saw; which calls belong together
    statistics     figures over calls, averages that leave out unknown values
    skip           the window of newest judged calls, and whether there is anything new in it
    policies       when a tool with new calls is summarized, and what the prompt holds
    llm_writer     guidance by a model, with `prompts.yaml`; `writer_reply` reads what it answers
    shown          guidance as an agent reads it: cleaned, said to be data, within a token budget
    tool_memory    what an agent, a dump or a report gets of one tool

`counted` holds the data-driven writer: every sentence is a claim with its counts and call ids. `analysis` is what
was found in a tool's calls, by modules of one subject each: `values` (what a parameter holds), `conditions` (what can
be said of a call before it is made), `patterns` (conditions that go with success or failure, by the tests of `exact`),
`error_groups`, `refusals` (values that errors name), `error_targets` (parameters that errors are about), `user_values`,
`repairs` and `repair_history` (repairs counted on from summary to summary). `claims`, `repair_claims` and
`usage_claims` say it as data, `worth` orders it, `render` puts it into the words of `phrases.yaml`. `claim_edits`
counts claims on with new calls; `on_change` says by exact tests whether a tool has changed since its last summary.
"""
