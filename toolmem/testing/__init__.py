"""Public stand-ins for tests.

`scripted`: a judge and a model that answer as they were told. `model_server`: a model's service on
this machine that speaks DashScope's and OpenAI's protocol, and fails as `faults` say. `clock`: time
that does not have to be waited for.
"""
