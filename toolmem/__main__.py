"""`toolmem` and `python -m toolmem`."""

import os
import sys

if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path[0] == os.getcwd():
        del sys.path[0]  # `python -m` puts the working directory first: what lies there is not ours to run
    from toolmem.cli import main

    main()
