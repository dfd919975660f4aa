"""One private run on several processes, each with a share of every draw: same algorithm, same epsilon.

    torchrun --nproc-per-node 2 my_run.py

    dist.init_process_group("gloo")
    dpsgd.train(..., chance=processes.agreed(chance))

All processes draw the same patients from the same stream. Each clips and sums the gradients of its share,
process 0 adds the noise, and all get the sum that a single process would have: the noise is there once, so
nothing about the accounting changes. That is why the mean of noisy gradients of independent workers is not
used here: it has another noise, and needs another accountant.
"""

from collections.abc import Iterable

import torch
import torch.distributed as dist

from privhelpers.dpsgd._chance import RandomStreams
from privhelpers.dpsgd._optimizer import Drawn, PrivateOptimizer
from privhelpers.errors import TrainingFailed


def _gathered(value: object) -> list:
    """Return what each process gave, in the order of their ranks."""
    if not dist.is_initialized():
        raise TrainingFailed(
            "the processes do not know each other; call torch.distributed.init_process_group first"
        )
    values: list = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def agreed(chance: RandomStreams) -> RandomStreams:
    """Return `chance` with the same draws on every process; a collective call.

    In release mode process 0 sends its streams of the draws to the others over the process group; they decide
    who takes part, so that channel must be as private as the notes. The noise is drawn by process 0 alone.

    Raises:
        TrainingFailed: the processes have different modes or seeds, or no process group was made.
    """
    if len({repr(given) for given in _gathered(chance.public())}) > 1:
        raise TrainingFailed("chance: the processes of this run have different modes or seeds")
    if chance.mode == "release":
        chance.share(_gathered((chance.sampling.get_state(), chance.choices.bit_generator.state))[0])
    chance.shared = True
    return chance


class SharedOptimizer(PrivateOptimizer):
    """A `PrivateOptimizer` whose draw is shared among the processes of the default process group.

    The weights must be the same on all processes at the start; they stay the same. Micro-batches are the
    pieces that are shared out, so choose `max_rows` small enough for every process to get some.

    Raises:
        TrainingFailed: at a step, if the processes did not draw the same patients, or are not a group.

    Source: Abadi et al. 2016, algorithm 1, its sum computed in parts.
    """

    def noisy_mean(self, draw: Iterable[Drawn]) -> torch.Tensor:
        """Fill `gradients` as a single process would; return the norms of the whole draw."""
        batches = list(draw)
        signs = _gathered(_sign(batches))
        rank, world = dist.get_rank(), dist.get_world_size()
        if len(set(_gathered(self._sealed))) > 1:
            raise TrainingFailed(
                "plan: the processes have different noise multipliers, clipping bounds or expected batch "
                "sizes, and the noise of one is added; give all of them the same plan"
            )
        if len(set(signs)) > 1:
            raise TrainingFailed(
                "draw: the processes drew different patients; begin with dpsgd.processes.agreed(chance), "
                "and continue a run from checkpoints of the same step"
            )
        scale, deviation = 1 / self.expected_batch_size, self.noise_deviation()
        self.gradients = self.engine.zero_sums()
        if rank == 0:
            self.chance.before_sum(self.gradients, deviation)
        local_norms = [
            self.engine.add(b, u, into=self.gradients, scale=scale).cpu() for b, u in batches[rank::world]
        ]
        for gradient in self.gradients.values():
            dist.reduce(gradient, 0)
        if rank == 0:
            self.chance.after_sum(self.gradients, deviation, scale * self.max_grad_norm)
        for gradient in self.gradients.values():
            dist.broadcast(gradient, 0)
        gathered = _gathered(local_norms)
        norms = [gathered[number % world][number // world] for number in range(len(batches))]
        return torch.cat([torch.empty(0, dtype=torch.float64), *norms])


def _sign(batches: list[Drawn]) -> tuple:
    """Return a value that two equal draws share and two different ones hardly ever do."""
    ids = [batch["input_ids"] for batch, _ in batches if isinstance(batch, dict)]
    return len(batches), *((tuple(rows.shape), int(rows.sum())) for rows in ids)
