"""The update of a run, put together from its configuration."""

from __future__ import annotations

import torch

from taggernet.config.run import Config
from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.training.adam import TrainState
from taggernet.training.objective import Objective
from taggernet.training.precision import in_bfloat16, is_captured, is_compiled
from taggernet.training.sources import Part, Source
from taggernet.training.step import Update


def update_for(
    config: Config, source: Source, state: TrainState, device: torch.device, part: Part, *, shared_statistics: bool
) -> Update:
    """``part`` is this process's of the batch; ``shared_statistics``: BatchNorm sees all processes' parts."""
    model = Tagger(config.model).to(device)
    model.use_kernels(config.runtime.kernels)
    if shared_statistics:
        model.share_statistics()
    work = config.optimiser.updates * update_flop(config)
    return Update(
        objective_for(config, model),
        source,
        state,
        config.optimiser,
        Key.of(config.seed_list, device),
        part,
        half=in_bfloat16(config.precision, device, work),
        whole=device.type == "cpu",
        compiled=is_compiled(config.runtime.compile, device, work, config.optimiser.updates),
        captured=is_captured(config.runtime.compile, device),
        buffer=max(config.runtime.log_every, 10),
    )


def objective_for(config: Config, model: Tagger) -> Objective:
    """What the configuration says to minimise."""
    return Objective(
        model, config.groups, config.iterations, config.class_cost, config.discount, config.class_dropout,
        config.class_reach, config.class_agreement, config.data.twins, config.class_distortion,
    )  # fmt: skip


def update_flop(config: Config) -> float:
    """Floating-point operations of the matrix products of an update of all seeds: forward, and twice that backward."""
    with torch.device("meta"):
        model = Tagger(config.model)
    products = sum(p.numel() * role.uses for p, role in model.parameter_roles().items() if role.fan_in)
    rows = config.optimiser.batch * config.groups
    return 3.0 * 2 * products * rows * config.iterations * config.seeds
