"""Shadow models: trained side by side on the machine's cores, each one kept as soon as it is done.

An attacker who can sample patients trains models of their own, knows who was in each, and learns from them
what membership looks like. Only what those models say of the candidate texts is kept, not the models.

    tasks = [Task("shadow-00", texts_of_a_random_half, candidates, settings, seed=0), ...]
    results = train_all(store, "shadow_models", tasks, train=training.train, processes=2)

Sources: Shokri et al. 2017, section V; Carlini et al. 2022, section IV.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from tqdm.auto import tqdm

from privhelpers import models
from privhelpers.artifacts import Parts, Store
from privhelpers.attacks import signals
from privhelpers.errors import InvalidParameter
from privhelpers.processes import side_by_side

KEPT = ("loss", "min_k", "min_k_plus_plus")  # signals of every candidate under every model
START = "public"  # every shadow model starts from the public checkpoint, as the target did


@dataclass(frozen=True)
class Task:
    """One model to train.

    Attributes:
        name: of its file, such as "shadow-00".
        texts: to train on.
        candidates: texts to score when it is trained, one or more.
        settings: of `privhelpers.training`.
        seed: of shuffling.
    """

    name: str
    texts: tuple[str, ...]
    candidates: tuple[str, ...]
    settings: object
    seed: int


def _run(store: Store, task: Task, train: Callable) -> dict[str, list[float]]:
    model, tokenizer = models.take(store, START)
    train(model, tokenizer, list(task.texts), task.settings, seed=task.seed, progress=False)
    measured = signals.measure(model, tokenizer, task.candidates, lower=False)
    return {name: getattr(measured, name).round(6).tolist() for name in KEPT}


def train_all(
    store: Store,
    folder: str,
    tasks: Sequence[Task],
    *,
    train: Callable,
    processes: int = 1,
    progress: bool = True,
) -> list[dict[str, np.ndarray]]:
    """Train the models of `tasks` from the public checkpoint and score the candidates under each.

    Every result is kept, as `artifacts.Parts` keeps it, as soon as its model is trained: a run that was
    killed trains only the missing ones. One torch thread a model, so that a result does not depend on the
    number of processes.

    Args:
        store: of the profile; contains the public checkpoint.
        folder: name of the chapter.
        tasks: models to train, names all different.
        train: `privhelpers.training.train`, or a function of the same arguments.
        processes: models trained at the same time, 1 or more.
        progress: whether to show a bar.

    Returns:
        What each task in turn keeps, by name, each of shape [candidates].

    Raises:
        InvalidParameter: names repeat, or processes is out of range.
        RunFailed: a process ended before its result; the models that are done are kept.
    """
    if len({task.name for task in tasks}) != len(tasks):
        raise InvalidParameter("tasks: names must differ")
    kept = [
        Parts(store, folder, [asdict(one.settings), one.seed, one.texts, one.candidates]) for one in tasks
    ]
    results = [part.read(task.name) for part, task in zip(kept, tasks, strict=True)]
    missing = [number for number, result in enumerate(results) if result is None]
    done = len(tasks) - len(missing)
    with tqdm(total=len(tasks), initial=done, desc="models", unit="model", disable=not progress) as bar:
        jobs = [(store, tasks[number], train) for number in missing]
        names = [tasks[number].name for number in missing]
        for job, result in side_by_side(_run, jobs, processes=processes, names=names):
            kept[missing[job]].write(names[job], result)
            results[missing[job]] = result
            bar.update()
    return [{name: np.array(values, dtype=float) for name, values in result.items()} for result in results]
