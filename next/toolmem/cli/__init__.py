"""The `toolmem` command. `main` holds its commands; each prints what an operation answers."""
