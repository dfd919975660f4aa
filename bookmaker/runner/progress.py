"""What a person sees of the chain: one line per run."""

import sys


def say(profile: str, text: str) -> None:
    """Print one line of progress on stderr."""
    sys.stderr.write(f"[{profile}] {text}\n")  # one write: lines of parallel runs do not mix
    sys.stderr.flush()
