"""The `toolmem` command: a module for each subcommand, named after it.

`main` has the group and turns errors into exit codes. `options` has the options of every command.
`console` prints tables and progress, and imports a command when it is run.
"""
