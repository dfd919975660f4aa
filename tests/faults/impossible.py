"""`make impossible N=... SEED=... JOBS=...`: finds released numbers that one of two neighbors cannot give.

A sum is released with and without the contribution of one unit. A number is impossible for a sum if no noise
that can be drawn, put through the same code, gives it bit for bit: one beside the grid, beyond the reach of
the noise, or in a hole that rounding left (Mironov 2012, "On Significance of the Least Significant Bits for
Differential Privacy"). Whoever sees one that is impossible for the neighbor knows who took part. Two arms
that are known to be wrong show that the same counter finds such numbers.
"""

import functools
import math
import sys
from unittest import mock

import numpy as np
import torch
from faults.harness import counted, report
from scipy.special import ndtr, ndtri

from privhelpers import dpsgd, rng
from privhelpers.dpsgd import _chance

RATIOS = (7.3, 0.73, 7.3e-2, 7.3e-3, 7.3e-4, 7.3e-6, 7.3e-10)  # of the contribution to the noise's deviation
BLOCK = 1 << 18  # numbers that are released at once
TRIAL = 4 * BLOCK  # draws of the release in one trial: with and without the unit, in two types
FEWER = 16  # times as many draws of the release as of each other arm
# A normal of the release is a sum of four over two, each as long as 2^53 uniforms let it be.
REACH = 2 * math.sqrt(2 * 53 * math.log(2)) + 1e-9
WINDOW = 8  # uniforms on both sides of the one that two rounded functions point at


class Release:
    """What release mode makes of a sum, and which draw of it comes nearest to a number.

    Args:
        deviation: of the noise.
    """

    name, types, shifts = "release mode", (torch.float32, torch.float64), (0,)

    def __init__(self, deviation: float) -> None:
        """Keep what the noise follows from."""
        self.chance, self.deviation, self.step = dpsgd.release(), deviation, _chance.grid_step(deviation)

    def released(self, sums: torch.Tensor) -> torch.Tensor:
        """Return what is released of these sums."""
        total = {"a": torch.empty_like(sums)}
        self.chance.before_sum(total, self.deviation)
        total["a"] += sums
        self.chance.after_sum(total, self.deviation, sensitivity=1.0)
        return total["a"]

    def replayed(self, sums: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Return what would have been released, had the noise been so many steps of the grid."""
        normals = steps.numpy() / self._steps_of_a_normal(len(sums))
        with mock.patch.object(_chance, "secret_normals", lambda _: normals):
            return self.released(sums)

    def possible(self, numbers: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
        """Return which numbers some draw gives of these sums."""
        bare = self.replayed(sums, torch.zeros(len(sums), dtype=torch.float64))
        steps = (numbers.double() - bare.double()) / self.step
        found = torch.zeros(len(sums), dtype=torch.bool)
        for shift in self.shifts:
            found |= self.replayed(sums, steps.round() + shift) == numbers
        return found & (steps.abs() <= REACH * self._steps_of_a_normal(len(sums)))

    @functools.cache  # noqa: B019 (as short-lived as its trial)
    def _steps_of_a_normal(self, count: int) -> float:
        """Return the deviation in steps, wider by what rounding of so many numbers can add."""
        with mock.patch.object(_chance, "_add_on_grid") as add:
            self.released(torch.zeros(count, dtype=torch.float64))
        return add.call_args.args[1] / self.step


class SumBesideTheGrid(Release):
    """The same noise, added to a sum that is not rounded to the grid."""

    name, types, shifts = "a sum that is not rounded", (torch.float64,), (-1, 0, 1)

    def released(self, sums: torch.Tensor) -> torch.Tensor:
        """Return the noise plus the sums."""
        self.chance.fill_with_noise(total := torch.empty_like(sums), self.deviation)
        return total.add_(sums)


class Naive:
    """Normals from uniforms in float64, as textbooks make them, added to the sum."""

    name, types = "textbook normals in float64", (torch.float64,)

    def __init__(self, deviation: float) -> None:
        """Keep the deviation and make a generator."""
        self.deviation, self.uniforms = deviation, np.random.default_rng()

    def released(self, sums: torch.Tensor) -> torch.Tensor:
        """Return the sums plus noise."""
        return self._replayed(sums, self.uniforms.integers(1, 1 << 53, len(sums)))

    def _replayed(self, sums: torch.Tensor, uniforms: np.ndarray) -> torch.Tensor:
        return sums + self.deviation * torch.from_numpy(ndtri(uniforms * 2.0**-53))

    def possible(self, numbers: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
        """Return which numbers some uniform near the one that the inverse names gives of these sums."""
        near = np.rint(ndtr(((numbers - sums) / self.deviation).numpy()) * 2.0**53).astype(np.int64)
        found = torch.zeros(len(sums), dtype=torch.bool)
        for shift in range(-WINDOW, WINDOW + 1):
            found |= self._replayed(sums, (near + shift).clip(1, (1 << 53) - 1)) == numbers
        return found


ARMS = (Release, SumBesideTheGrid, Naive)


def trial(index: int, seed: int) -> dict:
    """Return what one trial counts, by arm: draws, those impossible for the neighbor, and for their own sum.

    The seed draws the sums and the width of the noise. The noise of a release comes from the system, and no
    seed repeats it.
    """
    chance = rng.make(seed, f"impossible {index}")
    ratio, deviation = RATIOS[index % len(RATIOS)], float(10 ** chance.uniform(-4, 1))
    counts = {}
    for Arm in ARMS:
        draws = neighbors = own = 0
        for kind in Arm.types:
            size = BLOCK if Arm is Release else TRIAL // FEWER // 2
            without = torch.from_numpy(deviation * chance.standard_normal(size)).to(kind)
            both, arm = (without, without + ratio * deviation), Arm(deviation)
            for sums, others in (both, both[::-1]):
                numbers = arm.released(sums)
                draws += len(numbers)
                neighbors += int((~arm.possible(numbers, others)).sum())
                own += int((~arm.possible(numbers, sums)).sum())
        counts[Arm.name] = [draws, neighbors, own]
    return {"ratio": ratio, "counts": counts}


def _row(name: str, rows: list[dict], arm: str) -> str:
    draws, neighbors, own = (sum(row["counts"][arm][place] for row in rows) for place in range(3))
    bound = f"{100 * report.upper_bound(neighbors, draws):.2g} %"
    return f"| {name} | {draws:,} | {neighbors:,} | {bound} | {own:,} |"


def table(rows: list[dict], seed: int, ran: str, machine: str) -> str:
    """Return what was counted as Markdown."""
    release = [_row(f"**{Release.name}**", rows, Release.name)]
    for ratio in RATIOS:
        of = [row for row in rows if row["ratio"] == ratio]
        release.append(_row(f"a contribution of {ratio:g} deviations of the noise", of, Release.name))
    return "\n".join(
        [
            "# Released numbers that are impossible without a unit, or with it",
            "",
            f"Seed {seed} (of the sums; the noise of a release has none), commit {ran}, on {machine}.",
            "Half of the draws are with the unit and half without it; half in float32 and half in float64.",
            "Impossible: no noise that can be drawn gives this number of that sum, bit for bit.",
            "The upper bound is of the chance of a number that is impossible for the neighbor, one-sided, at",
            "95 % (Clopper-Pearson). The counter is wrong about a number in the last column.",
            "",
            "| what | draws | impossible for the neighbor | upper bound | impossible for its own sum |",
            "|---|---|---|---|---|",
            *release,
            *(_row(f"control: {arm.name}", rows, arm.name) for arm in ARMS[1:]),
            "",
        ]
    )


def wrong(rows: list[dict]) -> bool:
    """Return whether the release gave an impossible number, or the counter is one that cannot be trusted."""
    totals = {
        arm.name: [sum(row["counts"][arm.name][place] for row in rows) for place in range(3)] for arm in ARMS
    }
    blind = any(2 * totals[arm.name][1] < totals[arm.name][0] for arm in ARMS[1:])
    return totals[Release.name][1] > 0 or blind or any(own for _, _, own in totals.values())


def _count(asked: counted.Count) -> int:
    torch.set_num_threads(1)
    trials = len(RATIOS) * -(-asked.number // (len(RATIOS) * TRIAL))

    def tell(rows: list[dict]) -> str:
        found = sum(row["counts"][Release.name][1] for row in rows)
        return f"[impossible] {len(rows) * TRIAL:,} of {trials * TRIAL:,} draws, {found} impossible"

    rows = asked.rows(functools.partial(trial, seed=asked.seed), trials, tell)
    asked.publish(table(rows, asked.seed, asked.commit, asked.machine))
    return int(wrong(rows))


def main(arguments: list[str] | None = None) -> int:
    """Draw, count, and return 1 if a release gave a number that is impossible for the neighbor."""
    return counted.program("impossible", 100_000_000, _count, arguments)


if __name__ == "__main__":
    sys.exit(main())
