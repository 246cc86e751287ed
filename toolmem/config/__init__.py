"""The configuration: defaults, YAML files and overrides, checked as a whole.

`sections` declares what may be set. `layers` reads files and overrides into flat layers, which keep
the origin of each value. `environment` resolves what they take from the environment, and `reme`
translates files of ReMe. `check` compares a tree with the sections and collects every problem.
`load` does all of this, and `show` lists the settings. `names` suggests the nearest known name.
"""
