"""Guidance without a model: claims with their counts and the ids of their calls, put into words last.

`analysis` holds what was found in a tool's calls: `patterns` (conditions that go with success or failure), `refusals`
(values that errors name), `repairs` and `repair_history`, `error_targets`. `claims`, `repair_claims` and `usage_claims`
say it as data (`models.Claim`: kind, subject, counts); `worth` orders it; `render` and `phrases` put it into English or
Chinese. `claim_edits` counts claims on with new calls.
"""
