"""The configuration: defaults, YAML files and overrides, checked as a whole.

`sections` describes what may be set. `layers` reads files and overrides into flat layers that
remember where each value came from, `environment` resolves what they take from the environment, and
`reme` reads whole files of ReMe. `check` compares a tree with the sections and collects every
problem. `load` puts these together, `show` prints them. `names` finds the nearest known name.
"""
