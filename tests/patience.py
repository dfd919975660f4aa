"""How long a test waits for what it started: a hang ends, and no slow or busy machine fails."""

LIMIT_SECONDS = 3600
