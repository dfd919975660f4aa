"""`python -m bookmaker.runner`: see `_cli`."""

import sys

from bookmaker.runner import _warm

code = _warm.run_elsewhere(sys.argv[1:]) if sys.argv[1:2] == ["run"] else None
if code is None:
    from bookmaker.runner import _cli

    code = _cli.main()
sys.exit(code)
