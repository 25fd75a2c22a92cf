"""`python -m aj`: the same as `aj`."""

import sys

from aj.cli import main

sys.exit(main())
