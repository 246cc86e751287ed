"""What works: the room where judged calls of one tool become usage guidance.

In the order in which a window of calls meets them:

    outcomes       whether a call worked: its recorded flag, and what the judge saw
    statistics     figures over calls (rates with Wilson intervals, averages that leave out unknown values)
    skip           the window of newest judged calls, and whether there is anything new in it
    data_driven    guidance without a model: every sentence is a claim with its counts and call ids
    llm_writer     guidance by a model, with `prompts.yaml` and the reply reader beside it
    memory         what an agent, a dump or a report gets of one tool
    fitting        guidance within a token budget, whole sentences only

The data-driven writer stands on modules of one subject each: `conversations` (which calls belong together), `values`,
`sql` and `shell` (what a parameter holds), `conditions` (what can be said of a call before it is made), `exact`
(Fisher's test, Tarone's correction), `patterns` (conditions that go with success or failure), `error_messages`,
`refusals` (values that errors name), `repairs`, `repeats`; `analysis` holds what they find, `sentences`,
`repair_sentences` and `usage_sentences` make claims of it, `wording` and `phrases` say them in English or Chinese.
"""
