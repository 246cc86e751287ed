"""The room between the adapters of remote models and the network. It knows neither prompts nor tools.

An adapter begins as a `remote_model`: its `endpoint`, checked, and the `model_service` that speaks its protocol. A
request meets, in this order: `attempts` (retries, pacing, the cap in flight, the budget, booking), `slots` and
`budget`; then `dashscope_sdk` or `openai_http`, which send it through the loop's session of `http_sessions` and note
what happened on the wire in an `exchange`; and where it fails, `failures`, which makes one error tree of all the ways.
"""
