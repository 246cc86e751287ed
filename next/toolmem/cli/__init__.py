"""The `toolmem` command: one module for each subcommand.

`main` puts them together and turns errors into exit codes. `console` prints tables and progress,
and imports a command when it is run.
"""
