"""What works: the room where judged calls of one tool become usage guidance.

In the order in which a window of calls meets them:

    outcomes       whether a call worked: its recorded flag, and what the judge saw; which calls belong together
    statistics     figures over calls (rates with Wilson intervals, averages that leave out unknown values)
    skip           the window of newest judged calls, and whether there is anything new in it
    policies       when a tool with new calls is summarized, and what the prompt holds
    on_change      whether a tool has changed since its last summary: exact tests, one bound on their false alarms
    data_driven    guidance without a model: every sentence is a claim with its counts and call ids
    llm_writer     guidance by a model, with `prompts.yaml` and the reply reader beside it
    incremental    edits of numbered lines: what an incremental reply asks for, and the text after it
    claim_edits    the same without a model: claims of one kind and subject are counted on with the new calls
    memory         what an agent, a dump or a report gets of one tool
    fitting        guidance within a token budget, whole sentences only

The data-driven writer stands on modules of one subject each: `values` (with `readers.sql` and `readers.shell`: what a
parameter holds), `conditions` (what can be said of a call before it is made), `exact`
(Fisher's test, Tarone's correction), `patterns` (conditions that go with success or failure), `errors`,
`refusals` (values that errors name), `repairs`, `error_targets` (parameters that errors are about), `repair_history`
(repairs counted on from summary to summary); `analysis` holds what they find, `claims`, `repair_claims` and
`usage_claims` say it as data, `worth` orders it, `render` and `phrases` put it into English or Chinese.
"""
