"""`python -m bookmaker.runner`: see `cli`."""

import sys

from bookmaker.runner.cli import main

sys.exit(main())
