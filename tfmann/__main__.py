"""`python -m tfmann`: the command `tfmann`."""

import sys

from tfmann.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
