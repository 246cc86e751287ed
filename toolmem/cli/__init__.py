"""The `toolmem` command: a module for each subcommand, named after it.

`import_` is `toolmem import`, whose name is a keyword; `transcripts` finds what it reads by
`--from-agents`, and `sign_in` asks in the terminal of `serve` about browsers. `main` has the group
and turns errors into exit codes. `options` has the options of every command. `console` prints
tables and progress, and imports a command when it is run.
"""
