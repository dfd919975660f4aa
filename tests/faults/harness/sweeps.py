"""The door of sweeps: grids and names that are none; after a refusal nothing was written."""

import dataclasses

from faults.harness import base, options, values
from faults.harness.registry import Case, Trial, fault

from bookmaker.sweep import __main__ as sweep
from bookmaker.sweep import _grid
from privhelpers.artifacts import NAME, write_atomic

NAMES = tuple(name for name in values.HOSTILE_NAMES if name.isprintable() and name)
POOLS = {
    "epsilons": (
        *(
            "",
            " ",
            "1 1",
            "1 1.0",
            "8 x",
            "nan",
            "inf",
            "-inf",
            "-1",
            "0",
            "1e400",
            "1e-400",
            "0x8",
            "1,5",
            "1_0 10",
        ),
        *(
            "1 1.0000000000000001",
            "1 1.0000000001",
            " ".join(map(str, range(1, 60))),
            "9" * 5000,
            "1001",
            "\0",
            "True",
        ),
    ),
    "seeds": (
        "0 0",
        "-1",
        "1.5",
        "x",
        "1e3",
        "9" * 5000,
        "99999999999999999999",
        "0 00",
        "0 -0",
        "nan",
        "1_0 10",
    ),
    "architectures": (
        "tiny tiny",
        *(name for name in NAMES if " " not in name and not NAME.fullmatch(f"toy-{name}-s0")),
        "../../x",
        "tiny x\0",
    ),
    "name": (*NAMES[:-1], "../toy", "toy/.."),
    "profile": (*NAMES, "none"),
    "cores": ("0", "-1", "x", "1.5", "9" * 5000),
    "limit": (*options.BAD_NUMBERS, "0", "-1", "nan", "inf"),
    "cluster": (*NAMES, "none", "../cluster"),
}


def _root(t: Trial):
    """Return a repository with one profile, a finished sweep, and a cell of an earlier one."""
    (root := t.place / "root").mkdir()
    (root / "notebooks").symlink_to(base.grid() / "notebooks")
    (root / "privhelpers").symlink_to(base.grid() / "privhelpers")
    write_atomic(root / "params" / "toy.yml", (base.grid() / "params" / "toy.yml").read_bytes())
    write_atomic(root / "runs" / "sweeps" / "toy" / ".complete", b"sealed")
    write_atomic(root / "runs" / "toy-tiny-s0" / "profile.yml", b"shared: {}")
    return root


def _asked(t: Trial, root, **given: str) -> Case:
    usual = {"profile": "toy", "epsilons": "1 8", "seeds": "0 1", "architectures": "tiny"} | given
    words = [f"--{name}={value}" for name, value in usual.items()]
    sweep.repository_root = lambda: root
    sweep.build.chain = options.began
    call = lambda: options.run_command(t.place, words, main=sweep.main, home=root)  # noqa: E731
    return Case(call, watch=(root / "runs", root / "params"), given=True)


@fault("a value of a grid that is none, doubled or too many")
def _(t: Trial) -> Case:
    which = t.choose(POOLS)
    return _asked(t, _root(t), **{which: t.choose(POOLS[which])})


@fault("a profile with the name of a cell, or budgets of no profile")
def _(t: Trial) -> Case:
    root = _root(t)
    seed = str(t.below(5))
    path = root / "params" / f"toy-tiny-s{seed}.yml"
    how = t.choose(("file", "folder", "loop", "broken"))
    if how == "folder":
        path.mkdir()
    elif how == "loop":
        path.symlink_to(path.name)
    else:
        path.write_bytes(b"shared: {}" if how == "file" else b"\xff")
    return _asked(t, root, seeds=" ".join(dict.fromkeys([str(t.below(5)), seed])))


@fault("the usual grid begins the work")
def _(t: Trial) -> Case:
    seeds = sorted({t.below(1000) for _ in range(1 + t.below(2))})
    budgets = sorted({1 + t.below(100) for _ in range(2)})
    case = _asked(t, _root(t), epsilons=" ".join(map(str, budgets)), seeds=" ".join(map(str, seeds)))
    return dataclasses.replace(case, right=True, refusal=False)


@fault("axes of a grid that are no lists of different values")
def _(t: Trial) -> Case:
    usual = {"architectures": ["tiny"], "seeds": [0]}
    which = t.choose(usual)
    bad = (
        [],
        [0, 0],
        [0, False],
        [1, 1.0],
        ["a", "a"],
        range(1001),
        [0] * 10**5,
        (),
        {},
        "",
        [float("nan")] * 2,
    )
    value = bad[t.below(len(bad))]
    return Case(lambda: _grid.cells("toy", **usual | {which: value}))
