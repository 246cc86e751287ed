"""The `toolmem` command: a module for each subcommand, named after it.

`main` puts them together and turns errors into exit codes. `options` has what every command takes.
`console` prints tables and progress, and imports a command when it is run.
"""
