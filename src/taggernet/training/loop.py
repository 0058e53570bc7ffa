"""Training from a configuration to finished models: updates, records, evaluations, checkpoints, interruptions.

# S seeds
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from taggernet.arrays import Array
from taggernet.config.run import Config, differing_fields, from_json
from taggernet.data import Scenes
from taggernet.errors import OutOfMemory, is_out_of_memory
from taggernet.evaluation import Metrics, evaluate_weights
from taggernet.grouping_report import GroupingReport, beside_truth, grouping_report
from taggernet.tagger import Tagger
from taggernet.training import checkpoint, datasets, run_dir
from taggernet.training.adam import TrainState
from taggernet.training.assembly import update_for
from taggernet.training.background import Background
from taggernet.training.distributed import World, describe, pick_device, same_start, wait_for_all, world
from taggernet.training.failures import in_short, is_lost_peer, what_to_lower
from taggernet.training.finetune import start_weights
from taggernet.training.log import Records, TensorBoard
from taggernet.training.precision import precision_of_products, products_in_words
from taggernet.training.report import write_report
from taggernet.training.result import Run
from taggernet.training.seeds import carry_over, initial_weights
from taggernet.training.sources import Part
from taggernet.training.stopping import Patience, duration, numbers
from taggernet.training.time_spent import TimeSpent, in_words
from taggernet.training.update_loop import UpdateLoop
from taggernet.training.validation import check_data

__all__ = ["Run", "train", "train_to_end"]

REPORTED = 200
"""Validation scenes that the report at the end looks at."""


def train(
    config: Config,
    out: str | Path | None = None,
    scenes: Scenes | None = None,
    *,
    start: dict[str, Tensor] | None = None,
    since: float | None = None,
) -> Run:
    """Train every seed of a configuration at once, continuing a run that ``out`` already holds.

    Without ``out`` nothing is written. Ctrl-C and SIGTERM end it early: with ``out`` the state is saved first, and the
    same call resumes it. ``scenes`` are your own in memory, in place of those the configuration names;
    ``start`` are weights of a first phase (``Run.weights``), in place of the folder that ``start_from`` names.
    ``since`` is when the command began (``time.monotonic()``), for the record of where the time went.
    """
    spent = TimeSpent(since)
    path, claim = None if out is None else Path(out), None
    with ExitStack() as stack:
        first_look = pick_device(config.runtime.device)
        ranks = stack.enter_context(world(first_look.type))
        device = pick_device(config.runtime.device, ranks.size, ranks.local_rank)
        check_data(config, scenes)
        if start is None and config.start_from and not (path and checkpoint.folder_of(path).is_dir()):
            start = start_weights(config, device)  # before anything is written: the model may not fit
        if start is not None and any(len(w) != config.seeds for w in start.values()):
            given = len(next(iter(start.values())))
            raise ValueError(f"start has the weights of {given} seeds, but seeds={config.seeds}: give one each")
        if path is not None and ranks.main:
            claim = stack.enter_context(run_dir.lock_run(path))
            with claim.writing("the configuration"):
                run_dir.write_or_check_config(path, config)
        wait_for_all(ranks)
        try:
            stack.enter_context(precision_of_products(device))
            return _Training(config, path, device, ranks, scenes, start, claim, spent).run()
        except Exception as problem:
            if ranks.size > 1 and is_lost_peer(problem):
                raise ConnectionError("another process of this run has ended: what it said tells why") from problem
            if not is_out_of_memory(problem):
                raise
            what = in_short(problem)
        # Outside of the handler, so that this error does not hold on to what filled the memory.
        where = f"{config.recipe} does not fit the memory of {describe(device)}"
        raise OutOfMemory(f"{where} ({what}): {what_to_lower(config)}{checkpoint.kept(path, config)}")


def train_to_end(
    config: Config,
    out: str | Path | None = None,
    scenes: Scenes | None = None,
    *,
    start: dict[str, Tensor] | None = None,
    since: float | None = None,
) -> Run:
    """``train`` for callers that need finished models: an interruption is raised once the state is saved."""
    run = train(config, out, scenes, start=start, since=since)
    if not run.finished:
        raise KeyboardInterrupt
    return run


class _Training(UpdateLoop):
    """The parts of one call of ``train``."""

    def __init__(
        self,
        config: Config,
        path: Path | None,
        device: torch.device,
        ranks: World,
        scenes: Scenes | None,
        start: dict[str, Tensor] | None,
        claim: run_dir.RunLock | None,
        spent: TimeSpent,
    ) -> None:
        self.config, self.path, self.device, self.claim = config, path, device, claim
        self.console = Console(stderr=True, quiet=not (ranks.main and config.runtime.progress))
        self.seeds = config.seed_list
        self.saved: int | None = None
        """The update after which the newest whole checkpoint was written."""
        self.writer = Background()
        """Writes checkpoints."""
        self.records: Records | None = None
        self.board: TensorBoard | None = None
        self.metrics: Metrics = {}
        """The last on validation."""
        self.report: GroupingReport | None = None
        self.patience = Patience(config.optimiser.patience, by_parts=config.model.start == "parts")
        with spent.on("data"):
            train_scenes = datasets.training_set(config, scenes)
            self.valid = datasets.load_split(config.data, "valid", scenes)
            self.freeze_on = datasets.scenes_to_freeze_on(config, train_scenes)
        self.state, unlogged, done_early = self._state(start, datasets.scenes_to_start_from(config, train_scenes))
        same_start(self.state.step, ranks, device)
        part = Part.of(config.optimiser.batch, ranks.rank, ranks.size)
        source = datasets.source(config, device, self.seeds, part, train_scenes)
        update = update_for(config, source, self.state, device, part, shared_statistics=ranks.size > 1)
        super().__init__(update, config.optimiser, config.runtime, self.seeds, ranks)
        self.spent = spent
        self.unlogged, self.done_early = unlogged, done_early
        if self.reports and self.valid.groups is None:
            self.metric = "agreement"
        self.model = Tagger(config.model).to(device)
        self.model.use_kernels(config.runtime.kernels)
        words = f"{len(self.seeds)} seed{'s' if len(self.seeds) > 1 else ''} of {config.recipe} on {describe(device)}"
        self.console.print(f"training {words}, products in {products_in_words(update.half, device)}")

    def _state(self, start: dict[str, Tensor] | None, scenes: Array | None) -> tuple[TrainState, list[Tensor], bool]:
        """Where to begin, the costs that a checkpoint had not logged yet, and whether it was done early."""
        config = self.config
        if self.path is not None:
            found = checkpoint.load_latest(self.path, config, self.device)
            if found is not None:
                state, record = found
                self.saved, self.patience.since = state.step, record.get("patience_since", 0)
                done_early = record.get("done_early", False)
                if done_early and differing_fields(config, from_json(record["config"], "state.json")):
                    done_early, self.patience.since = False, state.step  # made longer: patience begins anew
                self.console.print(f"continuing {self.path} after update {state.step}")
                return state, [torch.tensor(record["unlogged"])] if record.get("unlogged") else [], done_early
        weights = initial_weights(config.model, self.seeds, self.device, scenes)
        if start is not None or config.start_from:
            weights = carry_over(weights, start_weights(config, self.device) if start is None else start)
        elif config.optimiser.lower_layers:
            self.console.print(
                f"the {config.optimiser.lower_layers} lowest layers have the learning rate of layers from a first "
                "phase, but they begin at random here: say with --start-from where that phase is"
            )
        return TrainState.fresh(weights, ema=config.optimiser.ema > 0), [], False

    def run(self) -> Run:
        config, state = self.config, self.state
        with ExitStack() as stack:
            self._open_logs(stack)
            stack.enter_context(self.writer)
            before = 0.0 if self.path is None else run_dir.seconds_before(self.path)
            seconds = before + self.run_updates()
        run = Run(
            config, dict(state.evaluated), state.step, seconds, self.metrics, self.path, self.done_early, self.freeze_on
        )
        if self.path is not None and self.ranks.main and self.finished:
            card: dict[str, object] = {"recipe": config.recipe, "updates": state.step}
            if config.data.permuted:
                card["data"] = asdict(config.data)
            with self._writing("the models"):
                run_dir.save_models(self.path, ((seed, run.model(i)) for i, seed in enumerate(self.seeds)), card)
        if self.done_early:
            self.console.print(
                f"stopped after update {state.step:,} of {config.optimiser.updates:,}: groups have formed, and cost "
                f"and agreement were flat over {config.optimiser.patience} evaluations (--patience 0 trains on)",
                soft_wrap=True, highlight=False,
            )  # fmt: skip
        if self.finished:
            self._report()
        else:
            kept = f": run the same command to resume {self.path}" if self.path else ""
            self.console.print(f"stopped after update {state.step} of {config.optimiser.updates}{kept}")
        times = self._times()
        self.console.print(in_words(times), highlight=False)
        return replace(run, times=times)

    def _times(self) -> dict[str, float]:
        """Where the time went, of this call; in timing.json, of every call that worked on the run."""
        times = self.spent.record()
        if self.path is not None and self.ranks.main:
            with self._writing("the times"):
                run_dir.add_times(self.path, times)
        return times

    # --- what is written ---------------------------------------------------------------------------------

    def _writing(self, what: str) -> AbstractContextManager[None]:
        if self.claim is None:
            return nullcontext()
        return self.claim.writing(what, self.what_is_kept)

    def what_is_kept(self) -> str:
        self.writer.settle()
        return checkpoint.kept(self.path, self.config)

    def _open_logs(self, stack: ExitStack) -> None:
        if self.path is not None and self.ranks.main:
            with self._writing("the records"):
                self.records = stack.enter_context(Records(self.path / "metrics.jsonl", self.state.step))
                board = TensorBoard(self.path / "tensorboard", self.state.step, self.config.runtime.tensorboard)
                self.board = stack.enter_context(board)
                self.patience.see_again(self.records.kept)

    def log(self, costs: Tensor) -> None:
        names = ("loss", "denoising", "classification") if self.config.class_cost else ("loss",)
        means = {name: costs[:, i].mean(0).tolist() for i, name in enumerate(names)}
        self._record(means, means)

    def _record(self, metrics: dict[str, Any], curves: dict[str, list[float]]) -> None:
        if self.records is not None and self.board is not None:
            self.writer.check()
            with self._writing("a record"):
                self.records.write({"step": self.state.step, "time": time.time(), **metrics})
                self.board.write(self.state.step, curves, self.seeds)

    def evaluate(self) -> float | None:
        config, scenes = self.config, self.valid[: self.runtime.evaluate_scenes]
        if not self.ranks.main or not len(scenes):
            return None
        metrics = evaluate_weights(
            self.model, self.update.current_state().evaluated, scenes, groups=config.test_groups,
            iterations=config.test_iterations, batch=config.evaluation_batch, starts=config.test_starts,
        ).metrics()  # fmt: skip
        curves = {f"valid {name}": [values[-1] for values in of_seeds] for name, of_seeds in metrics.items()}
        record: dict[str, Any] = {"valid": metrics, "seconds_trained": self.seconds_trained}
        if self.reports:
            self.report = self._grouping_report()
            found = record["grouping"] = numbers(self.report)
            curves |= {f"valid {name}": values for name, values in found.items()}
            self.patience.see(metrics["cost"], found)
            self.done_early = self.patience.is_over and not self.finished
        self._record(record, curves)
        self.metrics = metrics
        shown = curves.get("valid ami") or curves.get("valid agreement")
        return None if shown is None else sum(shown) / len(self.seeds)

    @property
    def reports(self) -> bool:
        """Whether to ask if groups formed: in a user's own data; the truth is not needed."""
        config = self.config
        return config.data.name not in datasets.BUILT_IN and config.test_groups > 1 and len(self.valid) > 0

    def _grouping_report(self) -> GroupingReport:
        config, weights = self.config, self.update.current_state().evaluated
        return grouping_report(
            self.model, weights, self.valid[:REPORTED], groups=config.test_groups, iterations=config.test_iterations,
            batch=config.evaluation_batch,
        )  # fmt: skip

    def announce(self, seconds: float) -> None:
        early = ", less if groups form early" if self.config.optimiser.patience else ""
        self.console.print(f"this will take about {duration(seconds)}{early}", highlight=False)

    def _report(self) -> None:
        """Say whether groups formed in a user's own data, and write the report."""
        if not self.reports or not self.ranks.main:
            return
        if not self.console.quiet:
            report = self.report or self._grouping_report()
            for line in filter(None, (str(report), beside_truth(self.metrics))):
                self.console.print(line, soft_wrap=True, markup=False, highlight=False)
        if self.path is not None:
            with self._writing("the report"):
                written = write_report(self.path, self.valid)
            self.console.print(f"more in {written}", soft_wrap=True, highlight=False)

    def save(self) -> None:
        """Copy the state to the host's memory; a thread writes it while the next updates are made."""
        if self.path is None or not self.ranks.main:
            return
        self.writer.wait()
        path, state, unlogged = self.path, self.state.copy(), torch.cat(self.unlogged).tolist() if self.unlogged else []
        extra = {
            "recipe": self.config.recipe, "unlogged": unlogged, "done_early": self.done_early,
            "patience_since": self.patience.since,
        }  # fmt: skip

        def write() -> None:
            with self._writing("a checkpoint"):
                if self.records is not None:
                    self.records.sync()
                checkpoint.save(path, state, self.config, extra, before=self.saved)
            self.saved = state.step

        self.writer.start(write)

    def wait_until_saved(self) -> None:
        self.writer.wait()
        wait_for_all(self.ranks)
