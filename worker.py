"""The worker process: runs jobs and delivers webhooks. `--only jobs` or `--only deliveries` for one of the two."""

import sys

from aj.processes import die_at_interrupt

if __name__ == "__main__":
    die_at_interrupt()  # before the rest is loaded, which takes a moment

from aj.worker.fleet import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
