"""What a person sees of the chain: one line per run."""

from bookmaker.runner._terminal import message


def say(profile: str, text: str) -> None:
    """Print one line of progress on stderr."""
    message(f"[{profile}] {text}")


def counted(number: int, one: str, more: str) -> str:
    """Return a number with what it counts, such as `1 run is` and `2 runs are`."""
    return f"{number} {one if number == 1 else more}"


def duration(seconds: float) -> str:
    """Return seconds as short words."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
