"""The worker process: runs jobs and delivers webhooks. `--only jobs` or `--only deliveries` for one of the two."""

import sys

from aj.worker.fleet import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
