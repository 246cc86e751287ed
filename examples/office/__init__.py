"""A trial of tool memory: agents at the desk of an animal clinic, whose tools have conventions that no schema tells.

    python -m examples.office --memory none --memory card --model NAME

`clinic` is the environment: eight tools and the state that they change; `tasks` what agents are asked to do there, with
the end state and answers by which the program knows whether they did it; `agent` one agent: a chat model that calls
tools; `memories` what each arm of the trial puts into the prompt; `trial` runs the arms and writes every call down.
`python -m examples.office --help` has the options.
"""
