"""How good can any model be on Shapes? The exact posterior over all placements gives the least cost, and an AMI.

    python benchmarks/bayes_limit.py --objects 1 2 3 --scenes 640 --model shapes --json results/table1/bayes-limit.json

Given x~, every placement of one to three shapes is weighed with the generator's prior and the likelihood of the bit
flips. The share of the weight that covers an element is the best possible q(x): its entropy, averaged over x~, is the
limit of the cost, and so is the mean of its cost on the true x. The groups of the most probable configuration give an
AMI, for clean input (on which models are scored) and for x~. With --model the limit is also estimated with that model's
cost on the same x~ as control variate, whose mean over many more scenes is known.

# B scenes · M placements, and one that is empty · N elements · a, b, c placements of three objects
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from taggernet import data
from taggernet.data.shapes import Placements
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.fileio import make_folder, write_json
from taggernet.metrics import adjusted_mutual_information
from taggernet.rng import Key
from taggernet.tag.corruption import BitFlip
from taggernet.tagger import Tagger
from taggernet.training.log import environment


@dataclass(frozen=True)
class Posterior:
    """Of a batch of scenes."""

    covered: Tensor  # (B, N) float64: the probability that x is 1
    best: Tensor  # (B, J): the placements of the most probable configuration
    log_evidence: Tensor  # (B,): log p(x~)


class Limit:
    """All configurations of a number of objects on a canvas, on one device."""

    def __init__(self, table: Placements, objects: int, noise: float) -> None:
        if objects not in (1, 2, 3):
            raise ValueError(f"objects={objects} cannot be enumerated: choose 1, 2 or 3")
        if not 0 < noise < 0.5:
            raise ValueError(f"noise={noise} is no bit-flip probability: give a number above 0 and below 0.5")
        self.objects, self.noise = objects, noise
        self.masks = table.masks.double()  # (M, N)
        places = table.rows * table.cols
        self.prior = torch.repeat_interleave(-torch.log(len(places) * places.double()), places)  # log, (M,)

    def posterior(self, x_tilde: Tensor, among: Tensor | None = None) -> Posterior:
        """Of x~ (B, N), 0 or 1; ``among`` are the only placements to think of."""
        choice = torch.arange(len(self.masks), device=x_tilde.device) if among is None else among
        sums = _Sums(self.masks[choice], self.prior[choice], self.noise, x_tilde)
        empty = len(choice)
        if self.objects == 1:
            sums.add(slice(0, empty), slice(empty, empty + 1), empty)
        elif self.objects == 2:
            sums.add(slice(0, empty), slice(0, empty), empty)
        else:
            for last in range(empty):
                sums.add(slice(0, last + 1), slice(0, last + 1), last, ordered=True)
        return sums.posterior(choice, self.objects)

    def explanation(self, x: Tensor) -> Tensor:
        """The most probable configurations that give x (B, N) exactly, (B, J)."""
        outside = self.masks @ (1 - x.double()).T  # (M, B)
        found = [
            self.posterior(one[None], among=(outside[:, number] == 0).nonzero().squeeze(1)).best
            for number, one in enumerate(x)
        ]
        return torch.cat(found)


class _Sums:
    """Sums over configurations; the union of three masks is a + b + c - ab - ac - bc + abc, for scores and coverage.

    One more placement, which is empty, stands for an object that is not there.
    """

    def __init__(self, masks: Tensor, prior: Tensor, noise: float, x_tilde: Tensor) -> None:
        self.masks = torch.cat([masks, torch.zeros_like(masks[:1])])
        self.prior, self.noise = torch.cat([prior, prior.new_zeros(1)]), noise
        self.odds = math.log((1 - noise) / noise) * (2 * x_tilde.double() - 1)  # of each element, (B, N)
        self.single = self.odds @ self.masks.T  # (B, M + 1)
        self.pair = (self.masks * self.odds[:, None]) @ self.masks.T  # (B, M + 1, M + 1)
        alone = self.single + self.prior
        self.two_objects = alone[:, :, None] + alone[:, None] - self.pair
        self.highest = self.odds.clamp(min=0).sum(1)  # no union scores more, so nothing overflows
        self.one, self.two = torch.zeros_like(self.single), torch.zeros_like(self.pair)
        self.three = torch.zeros_like(self.odds)
        self.best_weight = torch.zeros_like(self.highest)
        self.best = torch.zeros(len(x_tilde), 3, dtype=torch.int64, device=x_tilde.device)

    def add(self, first: slice, second: slice, last: int, *, ordered: bool = False) -> None:
        """All (a, b) for one c. ``ordered``: a, b <= c stand for all orders of the three."""
        elements = self.masks[last].nonzero().squeeze(1)
        a, b = self.masks[first][:, elements], self.masks[second][:, elements]
        scores = a * self.odds[:, None, elements]
        weight = torch.baddbmm(self.two_objects[:, first, second], scores, b.T.expand(len(scores), -1, -1))
        alone = self.single[:, last] + self.prior[last] - self.highest
        weight += (alone[:, None] - self.pair[:, first, last])[:, :, None]
        weight -= self.pair[:, last, None, second]
        weight.exp_()
        if ordered:  # three orders where c is above both, each twice in the square; fewer where it is equal
            weight *= 3
            weight[:, -1] *= 0.5
            weight[:, :, -1] *= 0.5
            weight[:, -1, -1] *= 4 / 3
        self._keep_best(weight, first, second, last)
        by_first, by_second = weight.sum(2), weight.sum(1)
        self.one[:, first] += by_first
        self.one[:, second] += by_second
        self.one[:, last] += by_first.sum(1)
        self.two[:, first, second] += weight
        self.two[:, first, last] += by_first
        self.two[:, second, last] += by_second
        self.three[:, elements] += ((weight @ b) * a).sum(1)

    def _keep_best(self, weight: Tensor, first: slice, second: slice, last: int) -> None:
        """The most probable set of placements; a pair (a, b) is in the square twice unless both are the same."""
        same = torch.diagonal(weight, dim1=1, dim2=2) if first == second else None
        if same is not None:
            same *= 0.5
        found, index = weight.flatten(1).max(1)
        if same is not None:
            same *= 2
        width = weight.shape[2]
        configuration = [first.start + index // width, second.start + index % width, torch.full_like(index, last)]
        better = found > self.best_weight
        self.best = torch.where(better[:, None], torch.stack(configuration, dim=1), self.best)
        self.best_weight = torch.where(better, found, self.best_weight)

    def posterior(self, choice: Tensor, objects: int) -> Posterior:
        total = self.one.sum(1) / 3  # every configuration was counted once for each of its three places
        covered = self.one @ self.masks - ((self.two @ self.masks) * self.masks).sum(1) + self.three
        ones = (self.odds > 0).double().sum(1)
        nothing = ones * math.log(self.noise) + (self.odds.shape[1] - ones) * math.log(1 - self.noise)
        log_evidence = total.log() + self.highest + nothing
        return Posterior((covered / total[:, None]).clamp(0, 1), choice[self.best[:, :objects]], log_evidence)


def entropy(q: Tensor) -> Tensor:
    """Mean over the elements, in nats."""
    return -(torch.xlogy(q, q) + torch.xlogy(1 - q, 1 - q)).mean(-1)


def cost(q: Tensor, x: Tensor) -> Tensor:
    """-log q(x), mean over the elements."""
    right = torch.where(x > 0, q, 1 - q).clamp(min=1e-12)
    return -right.log().mean(-1)


def groups_of(best: Tensor, masks: Tensor) -> Tensor:
    """Labels (B, N): the first object that covers an element, counted from 1; 0 where none does."""
    labels = torch.zeros(len(best), masks.shape[1], dtype=torch.int64, device=best.device)
    for number in reversed(range(best.shape[1])):
        labels = torch.where(masks[best[:, number]] > 0, number + 1, labels)
    return labels


def mean_and_error(values: np.ndarray) -> dict[str, float]:
    spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return {"mean": float(values.mean()), "standard_error": spread / len(values) ** 0.5}


def with_control(values: np.ndarray, control: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """The mean of values, corrected by a control variate whose mean over more scenes (``known``) is better known."""
    slope = float(np.cov(values, control)[0, 1] / control.var(ddof=1))
    rest = values - slope * control
    error = rest.var(ddof=1) / len(rest) + slope**2 * known.var(ddof=1) / len(known)
    return {"mean": float(rest.mean() + slope * known.mean()), "standard_error": float(error**0.5), "slope": slope}


def limits(
    objects: int = 3,
    n: int = 640,
    *,
    noise: float = 0.2,
    size: int = 20,
    style: str = "paper",
    split: str = "test",
    batch: int = 1,
    device: str = "cpu",
    costs: np.ndarray | None = None,
    seconds: float = math.inf,
) -> dict[str, Any]:
    """Limits of cost and AMI on the first n scenes of a split, or on as many as the seconds allow.

    x~ is that of ``taggernet.evaluation``. ``costs`` are a model's, of more scenes of the same split, on the same x~.
    """
    begin = time.monotonic()
    scenes = data.shapes(n, objects=objects, size=size, style=style, split=split)
    assert scenes.groups is not None
    x = torch.from_numpy(scenes.x).reshape(n, -1).to(device)
    true = torch.from_numpy(scenes.groups).reshape(n, -1).to(device)
    x_tilde = BitFlip(noise).apply(x.float()[None], Key.of([0], device).fold("evaluation").fold("noise"))[0]
    limit = Limit(data.placements(size, style, device), objects, noise)
    found: dict[str, list[Tensor]] = {"entropy": [], "cost": [], "ami": [], "ami_noisy": []}
    for first in range(0, n, batch):
        part = slice(first, first + batch)
        noisy = limit.posterior(x_tilde[part])
        found["entropy"].append(entropy(noisy.covered))
        found["cost"].append(cost(noisy.covered, x[part]))
        for name, best in (("ami", limit.explanation(x[part])), ("ami_noisy", noisy.best)):
            found[name].append(adjusted_mutual_information(true[part], groups_of(best, limit.masks)))
        if time.monotonic() - begin > seconds:
            break
    values = {name: torch.cat(parts).cpu().numpy() for name, parts in found.items()}
    record: dict[str, Any] = {
        "objects": objects, "noise": noise, "size": size, "style": style, "split": split,
        "scenes": len(values["cost"]), "placements": len(limit.masks), "seconds": time.monotonic() - begin,
        **{name: mean_and_error(v) for name, v in values.items()},
    }  # fmt: skip
    if costs is not None:
        done = len(values["entropy"])
        record["entropy_with_control"] = with_control(values["entropy"], costs[:done], costs)
    return record


def model_costs(name: str, n: int, device: str) -> np.ndarray:
    """The denoising cost of a model on each of n test scenes, after its last iteration."""
    model = Tagger.from_pretrained(name).to(device)
    found = evaluate_weights(model, stack_weights([model]), data.shapes(n, split="test"), iterations=5)
    return np.asarray(found.cost[0, -1], np.float64)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, nargs="+", default=[3], help="numbers of objects, each 1, 2 or 3")
    parser.add_argument("--scenes", type=int, default=64, help="test scenes, for each number of objects")
    parser.add_argument("--noise", type=float, default=0.2, help="bit-flip probability")
    parser.add_argument("--batch", type=int, default=1, help="scenes at once: 1 on a CPU, 32 on a GPU")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", help="control variate for three objects: a shipped model's name or a folder")
    parser.add_argument("--control-scenes", type=int, default=10_000, help="test scenes for the model's mean cost")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="stop after so many, for each number of objects"
    )
    parser.add_argument("--json", type=Path, help="also write the limits to this file")
    options = parser.parse_args(argv)
    found = []
    for objects in options.objects:
        costs = None
        if options.model and objects == 3:
            costs = model_costs(options.model, max(options.scenes, options.control_scenes), options.device)
        one = limits(
            objects, options.scenes, noise=options.noise, batch=options.batch, device=options.device, costs=costs,
            seconds=options.seconds,
        )  # fmt: skip
        shown = [
            f"{name} {v['mean']:.4f} ± {v['standard_error']:.4f}" for name, v in one.items() if isinstance(v, dict)
        ]
        print(f"{objects} object(s), {one['scenes']} scenes, {one['seconds']:.0f} s: {', '.join(shown)}")
        found.append(one)
    if options.json is not None:
        make_folder(options.json.parent)
        write_json(options.json, {"limits": found, "control": options.model, "environment": environment()})


if __name__ == "__main__":
    main()
