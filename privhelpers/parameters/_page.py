"""What a chapter checks itself, when nobody checked its parameters before it was started."""

import ast

from privhelpers.errors import InvalidParameter
from privhelpers.parameters._cell import checked, declared_in, unknown_name
from privhelpers.text import quoted

_INJECTED = "# Parameters\n"  # how papermill begins the cell that it puts after the declared one


def _assigned(source: str) -> set[str]:
    nodes = ast.walk(ast.parse(source))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _declaration(cells: list[str]) -> int | None:
    """Return the place of the parameters cell among the cells that ran: the last one, if it ran twice."""
    for place in reversed(range(len(cells))):
        try:
            if "profile" in declared_in(cells[place], "parameters"):
                return place
        except InvalidParameter:
            continue
    return None


def check() -> None:
    """Check the parameters of the notebook that runs, and give each value its declared type.

    Reads the declarations from the cell that ran, and the values from the notebook's own variables, so that
    papermill's, an edited cell's and a sweep's go through the same gate. Outside of a notebook it does
    nothing.

    Raises:
        InvalidParameter: papermill set a name that the cell does not declare, or a value has another type
            or lies out of its range.
    """
    from IPython import get_ipython  # the runner, which reads cells too, does without it

    shell = get_ipython()
    cells = [] if shell is None else list(shell.history_manager.input_hist_raw)
    place = _declaration(cells)
    if place is None:
        return
    known = declared_in(cells[place], "parameters")
    for cell in cells[place + 1 :]:
        if cell.startswith(_INJECTED) and (unknown := sorted(_assigned(cell) - set(known))):
            raise InvalidParameter(
                f"parameters.{quoted(unknown[0])}: {unknown_name(unknown[0], list(known))}"
            )
    values = {name: shell.user_ns[name] for name in known}
    shell.user_ns.update(checked(known, values, "parameters"))
