"""The fast path: two fused operations for CUDA, and what makes an update cheaper there. Everything works without it.

Two functions stand for two steps of the networks. Each computes what its reference in plain torch computes, with its
gradients, and reads and writes every activation as few times as it can:

    norm_activate   normalise, then activate   reference: ``rectified`` and ``scaled`` in nets/norm.py
    norm_combine    normalise, then combine    reference: ``Combinator.forward`` after a norm, in nets/ladder.py

``applies`` says whether they can be used for an input at all. The networks choose; ``--kernels off`` keeps them to the
references. tests/fast/test_ops.py compares the two. How to change the references: docs/changing-the-model.md.
"""

from taggernet.fast.ops import applies, norm_activate, norm_combine

__all__ = ["applies", "norm_activate", "norm_combine"]
