"""`python -m privhelpers.runner`: see `cli`."""

import sys

from privhelpers.runner.cli import main

sys.exit(main())
