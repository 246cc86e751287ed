"""`python -m toolmem` is the `toolmem` command."""

from toolmem.cli.main import main

main()
