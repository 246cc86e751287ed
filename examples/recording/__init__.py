"""Makes the sample that toolmem brings along: scripted agents, real tools.

A call meets the modules in this order: `traffic` plans four weeks of conversations, `scenarios/` holds what the
scripted users want, `agents` how scripted agents go about it (and what they get wrong), `world` the database,
folder, server, calendar and outbox that exist for one recording, `tools/` the tools that really run in it, and
`recorder` writes down what they answered. `python -m examples.recording.recorder --out DIR` makes the recording again.
"""
