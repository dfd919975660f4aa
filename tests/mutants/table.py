"""Faults that DP-SGD code is known for, each as one replacement in our source and the tests that must notice.

A replacement must fit exactly once, so that a rewritten line cannot leave its mutant behind unseen.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One fault: `old` becomes `new` in a module, and one of the tests that `tests` selects must fail."""

    name: str
    module: str
    old: str
    new: str
    tests: str


ENGINE, RECORDER = "privhelpers.dpsgd._engine", "privhelpers.dpsgd._recorder"
PARTS, LAYERS = "privhelpers.dpsgd._contributions", "privhelpers.dpsgd._layers"
CHECKS, SUPPORTED = "privhelpers.dpsgd._checks", "privhelpers.dpsgd._supported"
OPTIMIZER, LOOP = "privhelpers.dpsgd._optimizer", "privhelpers.dpsgd._loop"
SETTINGS, CALLBACKS = "privhelpers.dpsgd._settings", "privhelpers.dpsgd._callbacks"
RESUME, CHANCE = "privhelpers.dpsgd._resume", "privhelpers.dpsgd._chance"
PLAN, BATCHES = "privhelpers.accounting._plan", "privhelpers.dpsgd._batches"
LOSSES = "privhelpers.dpsgd._losses"
HEADER, CALIBRATION = "privhelpers.ledger._header", "privhelpers.accounting._calibration"
MOMENTS, BOUNDS = "privhelpers.accounting._moments", "privhelpers.accounting._bounds"
SEARCH = "privhelpers.accounting._search"
CHAIN, WRITER = "privhelpers.ledger._chain", "privhelpers.ledger._writer"
LEDGER = "tests/privhelpers/test_ledger.py::test_"
TRAINING = "tests/privhelpers/test_dpsgd_training.py::test_"

EQUAL = "clipped_sum_equals and float64 and fast"
FACTORS = "return (self.max_grad_norm / norms.clamp_min(1e-12)).clamp_max(1.0)"
NOISE = "return self.noise_multiplier * self.max_grad_norm / self.expected_batch_size"

MUTANTS = [
    # Clipping.
    Mutant("no clipping", ENGINE, FACTORS, "return torch.ones_like(norms)", EQUAL),
    Mutant("short gradients stretched", ENGINE, ".clamp_max(1.0)", "", EQUAL),
    Mutant(
        "the batch clipped as one",
        ENGINE,
        FACTORS,
        "return (self.max_grad_norm / norms.square().sum().sqrt()).clamp_max(1.0).expand_as(norms)",
        EQUAL,
    ),
    Mutant(
        "patients clipped note by note", ENGINE, "group_rows(unit, batch", "group_rows(None, batch", EQUAL
    ),
    Mutant("a patient's notes added up", ENGINE, "losses = losses / units.sizes().to(losses)", "pass", EQUAL),
    Mutant(
        "float32 norms in one flat sum",
        PARTS,
        "torch.linalg.vector_norm(value, dim=-1).square_()",
        "value.reshape(value.shape[0], -1).norm(2, dim=-1).square()",
        "read_low",
    ),
    Mutant(
        "inner products of another layer",
        PARTS,
        "one.data_ptr() == other.data_ptr()",
        "True",
        "clipped_sum_equals and float64 and ghost or inner_products",
    ),
    Mutant(
        "noise of one piece in every piece",
        CHANCE,
        "            for part in _parts(total.view(-1)):",
        "            for part in [total.view(-1)[:_CACHED]]:",
        "in_pieces",
    ),
    Mutant(
        "biases left out of the norm",
        RECORDER,
        "squares.append(row_squares(torch.cat(list(self.vectors.values()), 1)))",
        "pass",
        EQUAL,
    ),
    Mutant("cross term of the tied matrix dropped", PARTS, " + 2 * _cross(*sides)", "", EQUAL),
    Mutant(
        "products of two tokens counted once",
        PARTS,
        " + terms[:, :, :before].sum((1, 2))",
        "",
        "ghost_norm_in_pieces",
    ),
    Mutant("cross term counted once", PARTS, " + 2 * _cross(*sides)", " + _cross(*sides)", EQUAL),
    Mutant(
        "the reading end of the tied matrix left out",
        PARTS,
        "        self.head.add_to(total, factors, units)\n        self.read.add_to(total, factors, units)",
        "        self.head.add_to(total, factors, units)",
        EQUAL,
    ),
    Mutant(
        "repeated ids not added up before the norm",
        PARTS,
        ".index_add_(0, place.reshape(-1), flat)",
        ".index_copy_(0, place.reshape(-1), flat)",
        EQUAL,
    ),
    Mutant("gradients of padding ids kept", LAYERS, "if module.padding_idx is not None:", "if False:", EQUAL),
    Mutant(
        "a scale without its normalization",
        LAYERS,
        "torch.addcmul(-mean.to(full) * wide, value.to(full), wide).mul_(gradient)",
        "value * gradient",
        EQUAL,
    ),
    Mutant(
        "NaN of one record spreads",
        RECORDER,
        "any_bad = bool(bad.any())",
        "any_bad = False",
        "not_finite",
    ),
    Mutant(
        "a masked model predicts the next token",
        LOSSES,
        '"ForMaskedLM": False',
        '"ForMaskedLM": True',
        "row_loss",
    ),
    Mutant(
        "the batch mean of the library as loss",
        LOSSES,
        "return row_losses(model(**inputs).logits, labels, shift=LANGUAGE[kind])",
        "return model(**inputs, labels=labels).loss.expand(len(labels))",
        "does_not_change",
    ),
    # What it must refuse or let go.
    Mutant(
        "uses outside of known layers unheard",
        CHECKS,
        "        if filled:",
        "        if False:",
        "outside_of_its_layer",
    ),
    Mutant(
        "a layer may run twice", RECORDER, "if id(module) in self.seen:", "if False:", "layer_that_runs_twice"
    ),
    Mutant(
        "BatchNorm accepted",
        LAYERS,
        "isinstance(module, nn.modules.batchnorm._BatchNorm)",
        "False",
        "batch_norm",
    ),
    Mutant(
        "unknown layers skipped",
        LAYERS,
        "elif not list(module.children()):",
        "elif False:",
        "unknown_module",
    ),
    Mutant(
        "the graph kept alive", LAYERS, "(value.detach(), gradient)", "(value, gradient)", "keeps_no_memory"
    ),
    Mutant(
        "norms and sums under autocast",
        ENGINE,
        "with torch.no_grad(), self._full_precision():\n            norms",
        "with torch.no_grad():\n            norms",
        "autocast",
    ),
    # Noise.
    Mutant(
        "noise missing",
        OPTIMIZER,
        "self.chance.before_sum(total, deviation)",
        "[t.zero_() for t in total.values()]",
        "standard_deviation",
    ),
    Mutant(
        "sigma C on the mean",
        OPTIMIZER,
        NOISE,
        "return self.noise_multiplier * self.max_grad_norm",
        "standard_deviation",
    ),
    Mutant(
        "noise without the clipping bound",
        OPTIMIZER,
        NOISE,
        "return self.noise_multiplier / self.expected_batch_size",
        "every_parameter",
    ),
    Mutant(
        "noise divided twice",
        OPTIMIZER,
        NOISE,
        NOISE + "**2",
        "standard_deviation",
    ),
    Mutant(
        "noise missing on the tied matrix",
        OPTIMIZER,
        "self.gradients.complete()",
        "self.gradients.complete(), self.gradients.get('transformer.wte.weight', torch.empty(0)).zero_()",
        "every_parameter",
    ),
    Mutant(
        "the same noise for every parameter",
        CHANCE,
        "                part.normal_(0.0, deviation, generator=self.noise)",
        "                part.normal_(0.0, deviation, generator=self.noise.manual_seed(1))",
        "every_parameter",
    ),
    Mutant(
        "a clamp on sigma",
        OPTIMIZER,
        "return self._sealed[0]",
        "return min(self._sealed[0], 2.0)",
        "standard_deviation",
    ),
    Mutant(
        "divided by the size drawn",
        OPTIMIZER,
        "        scale, deviation = 1 / self.expected_batch_size, self.noise_deviation()\n",
        "        draw, deviation = list(draw), self.noise_deviation()\n"
        "        scale = 1 / max(1, sum(len(b['labels']) for b, _ in draw))\n",
        "over_the_expected_size",
    ),
    Mutant(
        "release noise in floating point",
        CHANCE,
        ".mul_(deviation / step).round_()",
        ".mul_(deviation / step)",
        "impossible",
    ),
    Mutant(
        "rows that mix not looked for",
        ENGINE,
        "self.check(_checks.few_rows(batch))",
        "self._checked = True",
        "mixes_rows",
    ),
    Mutant(
        "a release drawn from a seed",
        CHANCE,
        "self.sampling = _from_entropy()",
        "self.sampling = torch.Generator().manual_seed(secrets.randbits(63))",
        "follows_from_no_seed",
    ),
    Mutant(
        "buffers written unseen",
        CHECKS,
        "name not in before or before[name][0] is not value or before[name][1] != version",
        "False",
        "written_while",
    ),
    Mutant(
        "sums in three digits",
        PARTS,
        "return torch.promote_types(dtype, torch.float32)",
        "return dtype",
        "three_digits",
    ),
    Mutant("norms lost to cancellation", PARTS, "_LOST = 2.0**-12", "_LOST = 0.0", "cancel"),
    Mutant(
        "a part under study counted",
        LOOP,
        "counted = not self.not_counted",
        "counted = True",
        "under_study",
    ),
    Mutant(
        "a ledger states an epsilon for a part under study",
        LOOP,
        "            not_counted=self.not_counted,\n",
        "",
        "counts_steps_and_no_epsilon",
    ),
    Mutant("secret noise of the wrong width", CHANCE, ".sum(0) / 2", ".sum(0)", "standard_normals"),
    # Sampling and counting.
    Mutant(
        "floored batch size",
        PLAN,
        "return self.sample_rate * self.units",
        "return int(self.sample_rate * self.units)",
        f"{TRAINING}the_expected_batch_size_is_not_rounded",
    ),
    Mutant(
        "empty batches skipped",
        LOOP,
        "            for step, drawn in enumerate(bar, start):\n",
        "            for step, drawn in enumerate(bar, start):\n"
        "                if not drawn:\n                    continue\n",
        "empty_draw",
    ),
    Mutant(
        "a rate of 24 bits",
        SETTINGS,
        "uniform[undecided] += _BITS * more",
        "pass",
        "rate_that_is_accounted",
    ),
    Mutant(
        "padding read",
        LOOP,
        "self.masked = settings.objective is not None or reads_backward(model)",
        "self.masked = False",
        "whatever_the_micro_batches",
    ),
    Mutant(
        "a masked model's padding unasked",
        LOOP,
        "        optimizer.engine.check(*trial)\n",
        "",
        "in_spite_of_its_mask",
    ),
    Mutant(
        "other rows of one shape not asked about",
        CHECKS,
        "if math.isfinite(here) and math.isfinite(there) and not abs(here - there) <= most:",
        "if False:",
        "share_the_scale",
    ),
    Mutant("layers of one's own counted", LOOP, " + unsupported_parts(self.model)", "", "not_on_the_lists"),
    Mutant(
        "draws for all rows counted",
        SUPPORTED,
        "if getattr(config, name, False):",
        "if False:",
        "options_by_which",
    ),
    Mutant("any rotation counted", SUPPORTED, "not in ROTATIONS:", "is None:", "options_by_which"),
    Mutant(
        "dropout of a release seeded",
        CHANCE,
        "            torch.set_rng_state(_from_entropy().get_state())\n",
        "",
        "dropout_of_a_release",
    ),
    Mutant("a hook counted", SUPPORTED, "if name not in HOOKS:", "if False:", "not_on_the_lists"),
    Mutant(
        "16 bits counted",
        SUPPORTED,
        "sorted(map(str, dtypes_of(model) - set(TOLERANCE)))",
        "()",
        "not_on_the_lists",
    ),
    Mutant(
        "how much padding not asked about",
        BATCHES,
        "return batch, alone",
        "return batch, None",
        "how_much_padding",
    ),
    Mutant(
        "a layer that is not listed counted",
        SUPPORTED,
        "if not _is_supported_layer(one)]",
        "if False]",
        "not_on_the_lists",
    ),
    Mutant(
        "a shuffled sampler",
        LOOP,
        "            for step, drawn in enumerate(bar, start):\n",
        "            for step, drawn in enumerate(bar, start):\n"
        "                size = round(plan.expected_batch_size)\n"
        "                drawn = torch.randperm(plan.units)[:size].tolist()\n",
        "poisson_draws",
    ),
    Mutant(
        "contributions unbounded", BATCHES, "if len(rows) <= limit:", "if True:", "contributions_are_bounded"
    ),
    Mutant(
        "a patient cut in two",
        BATCHES,
        "unit = torch.tensor([u for u, patient_rows in enumerate(chosen) for _ in patient_rows])",
        "unit = torch.arange(sum(len(patient_rows) for patient_rows in chosen))",
        "whole_patients",
    ),
    Mutant(
        "a plan over its budget accepted",
        PLAN,
        "if not self.epsilon <= self.target_epsilon:",
        "if False:",
        f"{TRAINING}a_lowered_noise_multiplier_is_refused_before_a_note_is_read",
    ),
    Mutant(
        "steps not counted by the accountant beside",
        LOOP,
        "optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(plan.sample_rate))",
        "pass",
        "seen_by_opacus",
    ),
    Mutant(
        "calibration that overshoots",
        CALIBRATION,
        "    return _descend(exact, *_enough(exact, sigma), gap=tolerance)[0]",
        "    return 0.99 * _descend(exact, *_enough(exact, sigma), gap=tolerance)[0]",
        "calibration or calibrated",
    ),
    Mutant(
        "the accountant of the report",
        MOMENTS,
        "            return np.where(np.isnan(logs), np.inf, np.maximum(logs, 0.0))",
        "            return self.orders * (self.orders - 1) * self.sample_rate**2 / (2 * noise_multiplier**2)",
        "optimistic or renyi",
    ),
    # The canaries of an audit.
    Mutant(
        "canaries past the clipping",
        "privhelpers.dpsgd._canaries",
        "gradient[torch.arange(len(chosen)), self.column[chosen]] = self.raw_norm",
        "gradient[torch.arange(len(chosen)), self.column[chosen]] = self.plan.max_grad_norm / 2",
        "canaries_are_clipped",
    ),
    Mutant(
        "rows of the canaries stay",
        "privhelpers.dpsgd._canaries",
        "        delattr(self._model, _SPARE)",
        "        pass",
        "adapters_of_a_llama",
    ),
    Mutant(
        "every canary takes part",
        "privhelpers.dpsgd._canaries",
        "self._taking_part = np.flatnonzero(self.included)",
        "self._taking_part = np.arange(canaries.count)",
        "canaries_that_stayed_out",
    ),
    Mutant(
        "canaries in every step",
        LOOP,
        "[i - plan.units for i in drawn if i >= plan.units]",
        "list(range(canaries.units if canaries else 0))",
        "canaries_are_drawn",
    ),
    # The weights before the end.
    Mutant(
        "weights of an earlier step that go on changing",
        CALLBACKS,
        "return {name: p.detach().clone()",
        "return {name: p.detach()",
        "snapshots",
    ),
    Mutant(
        "weights of the step after",
        CALLBACKS,
        "if taken.done in self._steps:\n            self.weights[taken.done] =",
        "if taken.done - 1 in self._steps:\n            self.weights[taken.done - 1] =",
        "snapshots",
    ),
    # Going on after a kill.
    Mutant(
        "the data hashed without a key",
        RESUME,
        'hmac.new(key, data.encode(), "sha256").hexdigest() if key else data',
        "data",
        "ledger_of_a_release",
    ),
    Mutant(
        "steps counted after they are taken",
        RESUME,
        "            self.ledger.reserve(min(self.every, self.ledger.record.remaining))",
        "            pass",
        "before_it_is_taken",
    ),
    Mutant(
        "noise stream not kept",
        CHANCE,
        '            "noise": self.noise.get_state(),',
        '            "noise": torch.Generator().get_state(),',
        "interrupted_run",
    ),
    Mutant(
        "sampling stream not kept",
        CHANCE,
        '            "sampling": self.sampling.get_state(),',
        '            "sampling": torch.Generator().get_state(),',
        "interrupted_run",
    ),
    Mutant(
        "moments of Adam not kept",
        RESUME,
        'self.optimizer.load_state_dict(held.pop("optimizer"))',
        'held.pop("optimizer")',
        "interrupted_run",
    ),
    Mutant(
        "dropout stream not kept",
        CHANCE,
        '        torch.set_rng_state(state["dropout"])',
        "        pass",
        "dropout",
    ),
    Mutant(
        "resume with another sigma",
        HEADER,
        "        if sealed[name] != asked[name]",
        "        if sealed[name] != asked[name] and name != 'noise_multiplier'",
        "other_terms and sigma",
    ),
    Mutant(
        "resume with other data",
        RESUME,
        "_code(model, parts), _digest(rows)",
        "_code(model, parts), _digest(None)",
        "other_terms and data",
    ),
    Mutant(
        "a replaced ledger accepted",
        RESUME,
        '        record.require(held["head"])',
        "        pass",
        "lost_lines",
    ),
    Mutant(
        "a damaged checkpoint accepted",
        RESUME,
        "artifacts.check_seal(path, path.name)",
        "pass",
        "flipped_bit",
    ),
    Mutant(
        "lost steps taken again in release mode",
        RESUME,
        "return record.steps, self.tally",
        'return held["step"], self.tally',
        "release_mode_loses",
    ),
    # The lines of a ledger.
    Mutant(
        "a line edited or moved accepted",
        CHAIN,
        'if raw + b"\\n" != written:',
        "if False:",
        f"{LEDGER}any_changed_byte_is_refused",
    ),
    Mutant(
        "steps that do not add up accepted",
        CHAIN,
        "total != before.total_steps + steps or total",
        "total",
        f"{LEDGER}steps_that_do_not_add_up_in_the_middle_are_refused",
    ),
    Mutant(
        "an epsilon that falls accepted",
        CHAIN,
        " and epsilon >= before.epsilon",
        "",
        f"{LEDGER}an_epsilon_that_falls_under_right_hashes_is_refused",
    ),
    Mutant(
        "an epsilon of no accountant accepted",
        CHAIN,
        "if not math.isclose(last, counted, rel_tol=SAME):",
        "if False:",
        f"{LEDGER}a_wrong_value_under_a_right_hash_is_refused",
    ),
    Mutant(
        "an epsilon that falls written",
        CHAIN,
        "epsilon = max(record.epsilon, epsilon)",
        "pass",
        f"{LEDGER}an_accountant_that_rounds_unevenly_lowers_no_epsilon_and_exceeds_no_budget",
    ),
    Mutant(
        "more than the plan reserved",
        WRITER,
        "if steps > record.remaining:",
        "if False:",
        f"{LEDGER}more_than_the_plan_is_refused_before_anything_is_written",
    ),
    Mutant(
        "steps taken before their line is on the device",
        WRITER,
        "            os.fsync(self._descriptor)\n",
        "",
        f"{LEDGER}a_line_is_on_the_device_before_reserve_returns",
    ),
    Mutant(
        "an unfinished line kept",
        WRITER,
        "if len(whole := _chain.whole_lines(data)) != len(data):",
        "if False:",
        f"{LEDGER}a_last_line_that_is_cut_reserved_nothing",
    ),
    # The choice among runs.
    Mutant(
        "the best of many at one run's price",
        SEARCH,
        "return once + (1 + shape) * min(second, log_inverse)",
        "return spent",
        "theorem_2",
    ),
    Mutant(
        "a search counted once too few",
        SEARCH,
        "return once + (1 + shape) * min(second, log_inverse)",
        "return once + shape * min(second, log_inverse)",
        "pure_privacy_costs",
    ),
]
