"""How layers are shared out: cases worked by hand from upstream's rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.model.vocabulary import Optimize, Policy
from rlxdeploy.resolve.placement import DoesNotFit, Model, Stage, counts, ranges

GB = 10**9
RAM, SPEED, AUTO = Policy.RAM_BALANCED, Policy.THROUGHPUT, Policy.AUTO


def budgets(*gigabytes: float) -> list[Stage]:
    return [Stage(f"n{index}", size * GB) for index, size in enumerate(gigabytes)]


def speeds(*gflops: float, gigabytes: float = 100) -> list[Stage]:
    return [Stage(f"n{index}", gigabytes * GB, speed) for index, speed in enumerate(gflops)]


@pytest.mark.parametrize(
    ("stages", "layers", "shared"),
    [
        (budgets(10), 32, [32]),
        (budgets(10, 10), 32, [16, 16]),
        (budgets(30, 10), 32, [24, 8]),
        # 10.67 each rounds to 11: one too many comes off the last of the equal largest.
        (budgets(10, 10, 10), 32, [11, 11, 10]),
        # 3.33 each rounds to 3: the one that lacks goes to the last of equal spare room.
        (budgets(10, 10, 10), 10, [3, 3, 4]),
        # 2.5 and 2.5 round away from zero, to 3 and 3; to even they would be 2 and 2.
        (budgets(10, 10), 5, [3, 2]),
        # 7 * 1/14 = 0.5, 1.5, 2.0, 3.0 round to 1, 2, 2, 3: one too many, off the largest.
        (budgets(1, 3, 4, 6), 7, [1, 2, 2, 2]),
        # 0.2, 0.2, 3.6 round to 0, 0, 4.
        (budgets(1, 1, 18), 4, [0, 0, 4]),
        (budgets(0, 10), 4, [0, 4]),
        # More stages than layers: 0.33 each rounds to 0, the last of equals gets the one.
        (budgets(1, 1, 1), 1, [0, 0, 1]),
    ],
)
def test_memory_shares_layers_out(stages: list[Stage], layers: int, shared: list[int]) -> None:
    """ram_balanced: by budget, rounded half away from zero, the rest set right one by one."""
    assert counts(stages, Model(layers), RAM) == shared


@pytest.mark.parametrize(
    ("stages", "layers", "shared"),
    [
        # 8 GB of 2 GB layers cap the second at 4; the rest has room elsewhere.
        (budgets(30, 8, 20), 20, [10, 3, 7]),
        # By weight 12.4, 1.6: capped at 15 and 2; all is well without a correction.
        (budgets(31, 4), 14, [12, 2]),
        # By weight 3.5 and 3.5 round to 4 and 4: the last of equals gives one back.
        (budgets(9, 9), 7, [4, 3]),
        # A 3 GB budget holds one layer of 2 GB, not one and a half.
        (budgets(3, 40), 20, [1, 19]),
        (budgets(1, 40), 20, [0, 20]),
    ],
)
def test_no_stage_gets_more_than_it_holds(
    stages: list[Stage], layers: int, shared: list[int]
) -> None:
    """With layers of 2 GB, whole layers only count."""
    assert counts(stages, Model(layers, layer_bytes=2 * GB), RAM) == shared


def test_what_one_stage_cannot_hold_goes_to_the_one_with_most_room() -> None:
    """By speed 18 of 20 layers would go to a stage that holds 5: the others have spare room."""
    stages = [Stage("a", 10 * GB, 900), Stage("b", 20 * GB, 50), Stage("c", 24 * GB, 50)]

    # Caps 5, 10, 12; rounded 18, 1, 1 and capped 5, 1, 1: 13 are to be given.  Spare 0, 9, 11:
    # c takes two, then c and b take turns, the last of equals first: c six and b five more.
    assert counts(stages, Model(20, layer_bytes=2 * GB), SPEED) == [5, 6, 9]


@pytest.mark.parametrize(
    ("stages", "layers", "shared"),
    [
        (speeds(100, 300), 32, [8, 24]),
        (speeds(1, 1, 1, 1), 30, [8, 8, 7, 7]),
        # 10.67, 10.67, 10.67 for equal speeds, whatever they are.
        (speeds(5000, 5000, 5000), 32, [11, 11, 10]),
        (speeds(1, 999), 24, [0, 24]),
    ],
)
def test_speed_shares_layers_out(stages: list[Stage], layers: int, shared: list[int]) -> None:
    """Throughput: by the speed of the primary device alone."""
    assert counts(stages, Model(layers), SPEED) == shared


@pytest.mark.parametrize(
    ("stages", "layers", "shared"),
    [
        # 2.86, 7.14 round to 3, 7: stage times 3 and 2.8.  Moving one gives 2 and 3.2: worse.
        (speeds(100, 250), 10, [3, 7]),
        # 0.2, 1.8 round to 0, 2; the slowest would be 2/9, moving one gives 1: stays.
        (speeds(1, 9), 2, [0, 2]),
        # 1.5, 1.5, 3 round to 2, 2, 3, one off the largest: 2, 2, 2 with times 2, 2, 1.  The last
        # of the slowest gives the third one: 2, 1, 1.5.  The first does so too: 1, 1, 2, which
        # sorted is less than 2, 1.5, 1.  From there nothing helps.
        (speeds(100, 100, 200), 6, [1, 1, 4]),
    ],
)
def test_auto_levels_the_stage_times(stages: list[Stage], layers: int, shared: list[int]) -> None:
    """After rounding, single layers leave the slowest stage while that helps."""
    assert counts(stages, Model(layers, layer_flops=1e9), AUTO) == shared


@pytest.mark.parametrize("policy", [RAM, SPEED, AUTO])
def test_latency_fills_few_stages(policy: Policy) -> None:
    """In order, each to its capacity; an empty stage is not woken, not even to level times."""
    stages = [Stage("a", 8 * GB, 100), Stage("b", 18 * GB, 100), Stage("c", 90 * GB, 100)]
    model = Model(10, layer_bytes=2 * GB, layer_flops=1e9)

    assert counts(stages, model, policy, Optimize.LATENCY) == [4, 6, 0]


def test_a_model_that_is_too_big_is_refused_with_what_each_holds() -> None:
    """The sum of the capacities has to reach the layers."""
    with pytest.raises(DoesNotFit, match=r"32 layers .* room is for 14 \(n0 10, n1 4\)"):
        counts(budgets(20, 8), Model(32, layer_bytes=2 * GB), RAM)


def test_no_memory_at_all_is_refused_also_without_a_size() -> None:
    """Nobody can say whose part is how big of nothing."""
    with pytest.raises(DoesNotFit, match="no node has memory left"):
        counts(budgets(0, 0), Model(4), RAM)


def test_ranges_follow_one_another() -> None:
    """Half open, from 0 to the last layer; who gets none has an empty one."""
    assert ranges([8, 0, 24]) == ["0:8", "8:8", "8:32"]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 999)), min_size=1, max_size=8),
    st.integers(1, 96),
    st.sampled_from([RAM, SPEED, AUTO]),
    st.sampled_from([*Optimize]),
    st.integers(0, 3),
)
def test_every_layer_is_given_once(
    nodes: list[tuple[int, int]], layers: int, policy: Policy, optimize: Optimize, size: int
) -> None:
    """Whatever the machines, the counts add up and respect what each holds, or it is refused."""
    stages = [Stage("n", budget * GB, speed) for budget, speed in nodes]
    room = [min(layers, budget // size) if size else layers for budget, _ in nodes]
    try:
        shared = counts(stages, Model(layers, size * GB, 1e9), policy, optimize)
    except DoesNotFit:
        assert sum(room) < layers or not any(budget for budget, _ in nodes)
        return
    assert sum(shared) == layers
    assert all(0 <= count <= most for count, most in zip(shared, room, strict=True))
