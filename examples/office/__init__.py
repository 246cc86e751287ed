"""An agent at the front desk of an animal clinic, with tool memory and without.

The eight tools have conventions that no schema tells; refused calls do. The agent does some tasks
to learn from, and then others, with an empty prompt and with what toolmem wrote of the calls. Any
model with tools behind OpenAI's protocol plays the agent: `python -m examples.office --help`.
"""
