"""Public stand-ins for tests, such as a model service without a model.

`scripted`: a judge and a model with scripted answers. `model_server`: a local server with the
protocols of DashScope and OpenAI, which fails as its `faults` say. `clock`: a clock whose sleep
takes no time.
"""
