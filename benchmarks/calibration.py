"""How long a noise multiplier takes to find: this project, its peers and the report's printed loop.

`make bench` runs it. All methods take turns in one process, round after round, and the ratios are those of
medians of CPU time within the one run; a figure from another run or machine is never compared. The epsilon
in the last columns is that of the found noise multiplier by PLD, which shows what each search is worth.
"""

import argparse
import logging
import math
import platform
import statistics
import time
import warnings
from collections.abc import Callable

import dp_accounting
from dp_accounting import pld, rdp
from tqdm import tqdm

from privhelpers import accounting

REPORT = {"sample_rate": 4 / 1500, "steps": 1875, "delta": 1e-5}
LONGER = {"sample_rate": 0.01, "steps": 10_000, "delta": 1e-5}
LONGEST = {"sample_rate": 0.001, "steps": 1_000_000, "delta": 1e-6}
SETTINGS = [(1.0, REPORT), (10.0, REPORT), (1.0, LONGER), (5.0, LONGER)]
FAST = {"ours, RDP": 20}  # calls in one turn: a single one is too short for a clock
Method = Callable[..., float]


class PrintedAccountant:
    """The report's accountant as it is printed: every order, every step, in Python."""

    def __init__(self) -> None:
        """Start with nothing spent."""
        self.spent = dict.fromkeys(accounting.PRINTED_ORDERS, 0.0)

    def step(self, noise_multiplier: float, sample_rate: float) -> None:
        """Charge one step to every order."""
        for order in self.spent:
            plain = order / (2 * noise_multiplier**2)
            if order <= 1 / sample_rate:
                charge = sample_rate**2 * order / (2 * noise_multiplier**2)
            else:
                charge = min(plain, 1.5 * sample_rate * plain)
            self.spent[order] += charge

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon over the orders, by the classic conversion."""
        return min(spent + math.log(1 / delta) / (order - 1) for order, spent in self.spent.items())


def printed_loop(target: float, *, sample_rate: float, steps: int, delta: float) -> float:
    """Search as the report does; its first bracket, tolerance and rule to stop, without its clamps."""
    low, high = 0.1, 50.0
    for _ in range(50):
        sigma = (low + high) / 2
        accountant = PrintedAccountant()
        for _ in range(steps):
            accountant.step(sigma, sample_rate)
        spent = accountant.epsilon(delta)
        low, high = (low, sigma) if spent < target else (sigma, high)
        if abs(spent - target) < 0.05:
            break
    return (low + high) / 2


def ours(accountant: str) -> Method:
    """Return our calibration with one accountant."""

    def search(target: float, **run: float) -> float:
        return accounting.calibrate_noise_multiplier(target_epsilon=target, accountant=accountant, **run)

    return search


def google(make_accountant: Callable[[], dp_accounting.PrivacyAccountant]) -> Method:
    """Return dp-accounting's own calibration with one of its accountants."""

    def search(target: float, *, sample_rate: float, steps: int, delta: float) -> float:
        def event(sigma: float) -> dp_accounting.DpEvent:
            step = dp_accounting.PoissonSampledDpEvent(sample_rate, dp_accounting.GaussianDpEvent(sigma))
            return dp_accounting.SelfComposedDpEvent(step, steps)

        bracket = dp_accounting.LowerEndpointAndGuess(0.3, 1.0)  # lower ends cost it much more
        return dp_accounting.calibrate_dp_mechanism(make_accountant, event, target, delta, bracket, tol=1e-3)

    return search


def opacus(accountant: str) -> Method:
    """Return Opacus' calibration with one of its accountants."""
    from opacus.accountants.utils import get_noise_multiplier

    def search(target: float, *, sample_rate: float, steps: int, delta: float) -> float:
        return get_noise_multiplier(
            target_epsilon=target,
            target_delta=delta,
            sample_rate=sample_rate,
            steps=steps,
            accountant=accountant,
            epsilon_tolerance=0.01,
        )

    return search


def methods() -> dict[str, Method]:
    """Return every method by the name it has in the table."""
    return {
        "ours, RDP": ours("rdp"),
        "ours, PLD": ours("pld"),
        "printed loop": printed_loop,
        "Opacus RDP": opacus("rdp"),
        "Opacus PRV": opacus("prv"),
        "dp-accounting RDP": google(rdp.RdpAccountant),
        "dp-accounting PLD": google(pld.PLDAccountant),
    }


def measure(rounds: int, slow_rounds: int) -> list[tuple[float, dict, str, float, float]]:
    """Return (target, run, method, median CPU seconds, noise multiplier); methods take turns."""
    measured: dict[tuple[int, str], list[tuple[float, float]]] = {}
    searches = methods()
    for search in searches.values():
        search(2.0, sample_rate=0.1, steps=10, delta=1e-5)  # imports and caches are not what is measured
    slow = {"dp-accounting PLD", "Opacus PRV"}
    for turn in tqdm(range(rounds), desc="calibration", unit="round"):
        for place, (target, run) in enumerate(SETTINGS):
            for name, search in searches.items():
                if name in slow and turn >= slow_rounds:
                    continue
                calls = FAST.get(name, 1)
                start = time.process_time()
                for _ in range(calls):  # of each round another target, by a hair: no result is kept for it
                    sigma = search(target * (1 - turn * 1e-9), **run)
                measured.setdefault((place, name), []).append(((time.process_time() - start) / calls, sigma))
    return [
        (*SETTINGS[place], name, statistics.median(t for t, _ in tries), tries[-1][1])
        for (place, name), tries in measured.items()
    ]


def report(rows: list[tuple[float, dict, str, float, float]]) -> None:
    """Print one table for each setting, then the ratios that the issue of speed turns on."""
    seconds = {(target, run["steps"], name): median for target, run, name, median, _ in rows}
    for target, run in SETTINGS:
        print(
            f"\nepsilon {target:g}, q = {run['sample_rate']:.4g}, T = {run['steps']}, delta {run['delta']:g}"
        )
        print(f"  {'method':<20}{'CPU time':>12}{'sigma':>10}{'true epsilon (PLD)':>21}")
        for at, with_run, name, median, sigma in rows:
            if at == target and with_run is run:
                true = accounting.epsilon(noise_multiplier=sigma, **run)
                print(f"  {name:<20}{1000 * median:>9.2f} ms{sigma:>10.4f}{true:>21.4f}")
    print("\nratios of medians, this run")
    for target, run in SETTINGS:
        cells = {name: seconds[target, run["steps"], name] for name in methods()}
        print(
            f"  epsilon {target:g}, T = {run['steps']}: "
            f"printed loop / ours RDP = {cells['printed loop'] / cells['ours, RDP']:,.0f}; "
            f"dp-accounting PLD / ours PLD = {cells['dp-accounting PLD'] / cells['ours, PLD']:.1f}; "
            f"ours PLD takes {cells['ours, PLD']:.2f} s"
        )
    start = time.process_time()
    sigma = accounting.calibrate_noise_multiplier(target_epsilon=1.0, accountant="rdp", **LONGEST)
    elapsed = 1000 * (time.process_time() - start)
    print(f"  ours, RDP at T = {LONGEST['steps']:,}: {elapsed:.1f} ms (sigma {sigma:.4f})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="turns of the fast methods")
    parser.add_argument("--slow-rounds", type=int, default=1, help="turns of those that take seconds")
    options = parser.parse_args()
    logging.getLogger("absl").setLevel(logging.ERROR)
    warnings.simplefilter("ignore", UserWarning)  # Opacus' remark on its last order
    print(f"Python {platform.python_version()}, {platform.machine()}, one process, CPU time")
    report(measure(options.rounds, options.slow_rounds))


if __name__ == "__main__":
    main()
