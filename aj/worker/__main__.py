"""`python -m aj.worker`: the same as `python worker.py`."""

import sys

from aj.extras import require_server
from aj.processes import die_at_interrupt

die_at_interrupt()  # before the rest is loaded, which takes a moment
require_server()

from aj.worker.fleet import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
