"""The `toolmem` command: a module for each subcommand, named after it.

`import_` is `toolmem import`, whose name is a keyword. `transcripts` finds the sessions that it
reads with `--from-agents`. `sign_in` lets browsers in, at the terminal of `serve`. `main` has the
group and turns errors into exit codes. `options` has the options that commands share. `console`
prints tables and progress, and imports a command when it runs.
"""
