"""What works: the room where judged calls of one tool become usage guidance.

In the order in which a window of calls meets them:

    statistics     figures over calls (rates with Wilson intervals, averages that leave out unknown values)
    skip           the window of newest judged calls, and whether there is anything new in it
    data_driven    guidance without a model: every sentence is a claim with its counts and call ids
    llm_writer     guidance by a model, with `prompts.yaml` and the reply reader beside it
    memory         what an agent, a dump or a report gets of one tool

The data-driven writer stands on modules of one subject each: `conversations` (order and neighbours), `shapes`
(values of parameters), `shell` and `sql` (features of free text), `errors_seen` (classes and messages), `patterns`
(exact tests), `repairs`, `repeats`, `wording` (English and Chinese).
"""
