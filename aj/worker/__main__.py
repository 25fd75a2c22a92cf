"""`python -m aj.worker`: the same as `python worker.py`."""

import sys

from aj.worker.fleet import main

sys.exit(main(sys.argv[1:]))
