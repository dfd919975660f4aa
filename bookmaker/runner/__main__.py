"""`python -m bookmaker.runner`: see `cli`."""

import sys

from bookmaker.runner._cli import main

sys.exit(main())
