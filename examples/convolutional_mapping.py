"""A mapping of your own for TAG: the framework needs a function of rows, here a network of torch's own layers.

    python examples/convolutional_mapping.py

The package has a convolutional mapping too (taggernet.nets.ConvMapping, --mapping conv); this one shows what any module
must do to take its place. It is trained for a few seconds on scenes of two solid shapes; printed is how well its groups
match the true ones (adjusted mutual information: 0 is chance, 1 is perfect) before and after training.

# B batch · K groups · R rows = B x K · N = height x width elements
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from torch import Tensor, nn

import taggernet as tn
from taggernet.tag import Mapped

GROUPS, ITERATIONS, OBJECTS = 3, 3, 2


def convolution(inputs: int, outputs: int, dilation: int = 1) -> nn.Sequential:
    """A layer that treats each row separately: its norm is over channels and positions, not over rows."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=dilation, dilation=dilation),
        nn.GroupNorm(1, outputs),
        nn.ReLU(),
    )


class ConvolutionalMapping(nn.Module):
    """The features of a group, [z, m, delta z, L(m)], are channels of an image, and so are the next z and m.

    z and delta z have as many channels as the input, m and L(m) one each: channels share a mask.

    Every row goes through the same weights, independently of the others, so groups stay symmetric and K, T and the
    batch size are free. Two coordinates are added as channels, and a summary of the whole image is added at each
    position: a small neighbourhood cannot tell which object a group holds.
    """

    def __init__(self, height: int, width: int, channels: int = 24, colours: int = 1) -> None:
        super().__init__()
        self.height, self.width, self.colours = height, width, colours
        self.look = nn.Sequential(
            convolution(2 * colours + 4, channels),
            convolution(channels, channels),
            convolution(channels, channels, dilation=2),
        )
        self.summary = nn.Sequential(
            nn.AvgPool2d(2), nn.Flatten(), nn.Linear(channels * (height // 2) * (width // 2), channels)
        )
        self.answer = nn.Sequential(convolution(channels, channels), nn.Conv2d(channels, colours + 1, 1))
        rows, columns = torch.linspace(-1, 1, height), torch.linspace(-1, 1, width)
        self.register_buffer("place", torch.stack(torch.meshgrid(rows, columns, indexing="ij")))

    def forward(self, features: Tensor) -> Mapped:
        positions = self.height * self.width
        sizes = [self.colours * positions, positions] * 2
        images = [part.unflatten(1, (self.height, self.width, -1)) for part in features.split(sizes, dim=1)]
        place = self.place.expand(len(features), -1, -1, -1)
        h = self.look(torch.cat([torch.cat(images, dim=-1).permute(0, 3, 1, 2), place], dim=1))
        top = self.summary(h)
        out = self.answer(h + top[:, :, None, None]).permute(0, 2, 3, 1)
        return Mapped(out[..., :-1].flatten(1), out[..., -1].flatten(1), top)


def ami(model: tn.Tagger, scenes: tn.data.Scenes) -> float:
    """Mean over scenes; elements covered by several objects or by none are not scored."""
    out = model.group(scenes.x, groups=GROUPS, iterations=ITERATIONS + 2)
    return float(np.mean(tn.metrics.adjusted_mutual_information(scenes.groups, out.labels)))


def train(model: tn.Tagger, size: int, updates: int, batch: int, seed: int = 0) -> list[float]:
    """The denoising cost, averaged over iterations, on fresh scenes at every update."""
    key = tn.Key.of(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
    costs = []
    for update in range(updates):
        scenes, _ = tn.data.fresh_shapes(key.fold("scenes", update), batch, OBJECTS, size, style="small")
        x = scenes.float()
        x_tilde = model.corrupt(x, key.fold("noise", update))
        start = model.start(batch, GROUPS, key.fold("masks", update))
        states = model.iterate(x_tilde, start, ITERATIONS)
        cost = torch.stack([model.cost(x, state).mean() for state in states]).mean()
        optimiser.zero_grad()
        cost.backward()
        optimiser.step()
        schedule.step()
        costs.append(cost.item())
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a convolutional mapping for TAG on small scenes.")
    parser.add_argument("--updates", type=int, default=350, help="training updates")
    parser.add_argument("--batch", type=int, default=32, help="scenes per update")
    parser.add_argument("--size", type=int, default=10, help="height and width of a scene")
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # the matrices are small: more threads would only wait for each other
    test = tn.data.shapes(200, seed=0, objects=OBJECTS, size=options.size, style="small", split="test")
    config = tn.TaggerConfig(shape=(options.size, options.size), noise=0.2, mean=float(test.x.mean()))
    model = tn.Tagger(config, ConvolutionalMapping(options.size, options.size))

    print(f"weights: {sum(p.numel() for p in model.parameters()):,}")
    print(f"AMI before training: {ami(model, test):.3f}")
    begun = time.perf_counter()
    costs = train(model, options.size, options.updates, options.batch)
    seconds = time.perf_counter() - begun
    print(f"{options.updates} updates in {seconds:.0f} s, cost {costs[0]:.3f} -> {np.mean(costs[-20:]):.3f}")
    print(f"AMI after training:  {ami(model, test):.3f}")


if __name__ == "__main__":
    main()
