"""The end of every process below this one."""

import psutil


def kill_children() -> None:
    """Kill every process below this one, those that it starts meanwhile too."""
    for _ in range(3):
        children = psutil.Process().children(recursive=True)
        for child in children:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue
        if not children:
            return
        psutil.wait_procs(children, timeout=0.5)
