"""`toolmem` and `python -m toolmem`."""

from toolmem.cli import main

if __name__ == "__main__":
    main()
