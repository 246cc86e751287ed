"""The op framework: ops, the expressions that compose them, the checks before a run, the run itself.

It knows nothing of tools. An op declares what it reads and leaves (`op`), `expression` reads a flow from text,
`configure` binds it with the configuration, `checks` finds what could not work, `runner` runs it and leaves a `report`.
"""
