"""What training leaves: models of each seed, with the K and T they were tested with."""

from __future__ import annotations

from dataclasses import replace

import torch
from toys import toy

from taggernet.training import Run, train
from taggernet.training.seeds import initial_weights


def test_each_seed_is_a_model() -> None:
    run = train(toy(seeds=2, updates=1))
    for index in (0, 1):
        model = run.model(index)
        assert (model.groups, model.iterations, model.training) == (3, 2, False)
        assert all(torch.equal(w, run.weights[name][index]) for name, w in model.state_dict().items())


def test_a_run_is_finished_at_its_last_update_or_earlier_where_nothing_more_comes() -> None:
    config = toy(updates=12)
    run = Run(config, initial_weights(config.model, [0], "cpu"), 6, 1.0, {})
    assert not run.finished
    assert replace(run, step=12).finished
    assert replace(run, done_early=True).finished
