"""Guidance without a model: every sentence is a claim with its counts and the ids of its calls.

`analysis` holds what was found in a tool's calls: `patterns` (conditions that go with success or failure), `refusals`
(values that errors name), `repairs` and `repair_history`, `error_targets`. `sentences`, `repair_sentences` and
`usage_sentences` make claims of it; `wording` and `phrases` say them in English or Chinese.
"""
