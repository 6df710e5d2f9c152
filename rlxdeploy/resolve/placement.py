"""How many of a model's layers each stage gets, by upstream's rules: weights, caps and rounding.

All of it is arithmetic on budgets and speeds; where they come from is `resolve.shares`' business.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from rlxdeploy.model.vocabulary import Optimize, Policy

# Stage times nearer than this to one another are equal.
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Stage:
    """What one node brings: *budget* in bytes, all reserves taken off, and *gflops*, at least 1."""

    name: str
    budget: float
    gflops: float = 1.0


@dataclass(frozen=True, slots=True)
class Model:
    """What is shared out; *layer_bytes* 0: nobody said how big a layer is."""

    layers: int
    layer_bytes: int = 0
    layer_flops: float = 0.0


class DoesNotFit(ValueError):
    """The stages together do not hold the model; the message says how much each holds."""


def counts(
    stages: Sequence[Stage], model: Model, policy: Policy, optimize: Optimize = Optimize.THROUGHPUT
) -> list[int]:
    """Return how many layers each stage gets, in their order.

    Raises DoesNotFit.  A policy of `manual` is nothing to count.
    """
    caps = [_capacity(stage, model) for stage in stages]
    if sum(caps) < model.layers:
        held = ", ".join(f"{one.name} {cap}" for one, cap in zip(stages, caps, strict=True))
        raise DoesNotFit(f"{model.layers} layers do not fit: room is for {sum(caps)} ({held})")
    if optimize is Optimize.LATENCY:
        shared = _filled(caps, model.layers)
    else:
        shared = _rounded(_weights(stages, policy), caps, model.layers)
    if policy is not Policy.AUTO:
        return shared
    seconds = [model.layer_flops / (stage.gflops * 1e9) for stage in stages]
    return _levelled(shared, seconds, caps, wake=optimize is not Optimize.LATENCY)


def ranges(shared: Sequence[int]) -> list[str]:
    """Return the half-open ranges that these counts come to, one after the other."""
    return [f"{first}:{end}" for first, end in pairwise((0, *accumulate(shared)))]


def _capacity(stage: Stage, model: Model) -> int:
    if not model.layer_bytes:
        return model.layers
    return min(model.layers, int(stage.budget // model.layer_bytes))


def _weights(stages: Sequence[Stage], policy: Policy) -> list[float]:
    if policy is Policy.RAM_BALANCED:
        return [stage.budget for stage in stages]
    return [stage.gflops for stage in stages]


def _filled(caps: Sequence[int], layers: int) -> list[int]:
    """Fill the stages in order, so that few of them take part."""
    shared = []
    for cap in caps:
        shared.append(min(cap, layers))
        layers -= shared[-1]
    return shared


def _rounded(weights: Sequence[float], caps: Sequence[int], layers: int) -> list[int]:
    """Round each one's part, cap it, and set right what is too little or too much, one by one."""
    whole = sum(weights)
    if not whole:
        raise DoesNotFit(f"{layers} layers do not fit: no node has memory left for any")
    shared = [
        min(_round(layers * weight / whole), cap) for weight, cap in zip(weights, caps, strict=True)
    ]
    while sum(shared) < layers:
        spare = [cap - count for cap, count in zip(caps, shared, strict=True)]
        shared[_last_largest(spare)] += 1
    while sum(shared) > layers:
        shared[_last_largest(shared)] -= 1
    return shared


def _round(value: float) -> int:
    """Round half away from zero, as upstream does; Python's own rounds half to even."""
    below = math.floor(value)
    return below + (value - below >= 0.5)  # noqa: PLR2004 - a half


def _last_largest(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda index: (values[index], index))


def _levelled(
    shared: list[int], seconds: Sequence[float], caps: Sequence[int], *, wake: bool
) -> list[int]:
    """Move single layers off the slowest stage as long as the stage times, worst first, improve.

    Unless *wake*, a stage without layers stays without.
    """
    while True:
        times = [count * one for count, one in zip(shared, seconds, strict=True)]
        slowest = _last_largest(times)
        moves = [
            [count - (index == slowest) + (index == to) for index, count in enumerate(shared)]
            for to in range(len(shared))
            if to != slowest and shared[to] < caps[to] and (wake or shared[to])
        ]
        best = min(moves, key=lambda moved: _worst_first(moved, seconds), default=None)
        if best is None or not _improves(
            _worst_first(best, seconds), _worst_first(shared, seconds)
        ):
            return shared
        shared = best


def _worst_first(shared: Sequence[int], seconds: Sequence[float]) -> list[float]:
    return sorted((count * one for count, one in zip(shared, seconds, strict=True)), reverse=True)


def _improves(times: Sequence[float], before: Sequence[float]) -> bool:
    for one, other in zip(times, before, strict=True):
        if not math.isclose(one, other, rel_tol=_TOLERANCE):
            return one < other
    return False
