"""Public stand-ins for tests.

`scripted`: a judge and a model with scripted answers. `model_server`: a local server of DashScope's
and OpenAI's protocols, which fails as `faults` say. `clock`: a clock whose sleep takes no time.
"""
