"""Which layers each node gets, from what is written, surveyed and deployed."""

from dataclasses import replace

import pytest

from rlxdeploy.errors import CompileError
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import Device, HostFacts
from rlxdeploy.resolve.resolve import resolve
from tests.resolve.lab import CONTROLLER, CPU, GIB, HOSTS, deployed, load, machine, survey

GB = 10**9


def host(
    name: str, gigabytes: float, *devices: Device, total: float = 0.0, gflops: float = 0.0
) -> HostFacts:
    """Return the machine *name* of a, b, c with so much memory available (decimal GB)."""
    facts = machine(name, f"10.0.0.{'abcd'.index(name) + 1}/24", *devices)
    hardware = replace(
        facts.hardware,
        ram_avail=int(gigabytes * GB),
        ram_total=int((total or gigabytes) * GB),
        gflops=gflops,
    )
    return replace(facts, hardware=hardware)


def settle(text: str, *machines: HostFacts, nodes: str = HOSTS) -> Resolution:
    """Resolve a `[placement]` over the hosts a, b, c."""
    return resolve(load(f"{text}\n{nodes}"), survey(*machines), CONTROLLER)


def layers(resolution: Resolution) -> list[str | None]:
    return [seat.share.layers for seat in resolution.seats]


def notices(resolution: Resolution) -> str:
    return "\n".join(map(str, resolution.notices))


EQUAL = (host("a", 20), host("b", 20), host("c", 20))
PLACEMENT = "[placement]\nn_layers = 12\n"


def test_memory_after_the_reserve_counts() -> None:
    """20, 14 and 10 GB less 6 leave 14, 8 and 4 of 26: 6.46, 3.69 and 1.85 of twelve layers."""
    found = settle(PLACEMENT, host("a", 20), host("b", 14), host("c", 10))

    assert layers(found) == ["0:6", "6:10", "10:12"]
    assert found.seats[1].why["layers"].startswith("ram_balanced of 12 layers, by 8.0 GB")


@pytest.mark.parametrize(
    ("text", "machines", "shared"),
    [
        # 26 available, but 16 written: 10, 10 and 14 GB after the reserve; 3.53, 3.53 and 4.94
        # round to 4, 4, 5, and the largest gives one back.
        ("max_ram_gb = 16", (host("a", 26), host("b", 16), host("c", 20)), "0:4 4:8 8:12"),
        # More than the machine has counts as what it has: 24 less 6 is 18, of 36.
        (
            "max_ram_gb = 99",
            (host("a", 20, total=24), host("b", 15), host("c", 15)),
            "0:6 6:9 9:12",
        ),
    ],
    ids=["less than available", "more than there is"],
)
def test_max_ram_gb_is_the_memory_a_node_has(
    text: str, machines: tuple[HostFacts, ...], shared: str
) -> None:
    """What is written goes before what is available, and no further than what there is."""
    nodes = HOSTS.replace('ssh = "a"\n', f'ssh = "a"\n{text}\n')

    assert layers(settle(PLACEMENT, *machines, nodes=nodes)) == shared.split(" ")


@pytest.mark.parametrize(
    ("device", "shared"),
    [
        # 85 % of 20 GB is 17, less 6 is 11; the others have 24 less 6 is 18, of 47: 2.81, 4.6, 4.6
        # round to 3, 5, 5 and the last of the largest gives one back.
        (Device("metal", "M", 20 * GB), "0:3 3:8 8:12"),
        (Device("vulkan", "V", 20 * GB), "0:3 3:8 8:12"),
        (Device("cuda", "C", 20 * GB, ident="0"), "0:4 4:8 8:12"),
        (Device("metal", "M", 0, unified=True), "0:4 4:8 8:12"),
        (Device("metal", "M", 900 * GB), "0:4 4:8 8:12"),
    ],
    ids=["metal", "vulkan", "cuda pages", "shares all", "more than the machine"],
)
def test_an_accelerator_s_own_memory_bounds_its_node(device: Device, shared: str) -> None:
    """To 85 % of it, but for cuda, which pages, and where it is all of the machine's."""
    found = settle(PLACEMENT, host("a", 24, device), host("b", 24), host("c", 24))

    assert layers(found) == shared.split(" ")


def test_the_cache_is_kept_free_on_every_node() -> None:
    """Four layers of 1,000 tokens of 1 MB are 4 GB: 14, 8 and 4 GB become 10, 4 and 0."""
    cache = "[placement.objective]\ncontext = 1000\nkv_bytes_per_layer_token = 1_000_000\n"
    found = settle(PLACEMENT + cache, host("a", 20), host("b", 14), host("c", 10))

    assert layers(found) == ["0:9", "9:12", "12:12"]


@pytest.mark.parametrize(
    ("word", "message"),
    [("fail", "fail: rlxdeploy reads no model"), ("assume", "assume: rlxdeploy reads no model")],
)
def test_a_cache_that_nobody_can_tell_is_refused_where_that_is_written(
    word: str, message: str
) -> None:
    """There is no model to read its size from; unwritten, the plan says that it does not count."""
    text = f'{PLACEMENT}[placement.objective]\non_unknown_kv = "{word}"\n'
    with pytest.raises(CompileError, match=message):
        settle(text, *EQUAL)

    assert "key-value cache is not reckoned with" in notices(settle(PLACEMENT, *EQUAL))
    quiet = settle(text.replace(word, "ignore"), *EQUAL)
    assert "key-value cache" not in notices(quiet)


def test_throughput_counts_what_was_measured() -> None:
    """The primary device's speed, else its node's; an unmeasured one counts as 1, and is named."""
    text = f'{PLACEMENT}policy = "throughput"\n'
    fast = Device("cuda", "C", 90 * GB, ident="0", gflops=300)

    found = settle(text, host("a", 20, fast, gflops=9), host("b", 20, gflops=100), host("c", 20))

    # 8.98, 2.99 and 0.03.
    assert layers(found) == ["0:9", "9:12", "12:12"]
    assert "nobody measured how fast c is" in notices(found)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("", "layer_bytes, layer_flops, the measured speed of a, b, c"),
        ("layer_bytes = 9\n", "layer_flops, the measured speed of a, b, c"),
        ("layer_bytes = 9\nlayer_flops = 9\n", "the measured speed of a, b, c"),
    ],
)
def test_auto_says_what_it_lacks(text: str, missing: str) -> None:
    """It is not supported without its inputs, each of which is named."""
    with pytest.raises(CompileError, match=f"auto is not supported without {missing}"):
        settle(f'{PLACEMENT}policy = "auto"\n{text}', *EQUAL)


def test_auto_levels_the_stages_where_its_inputs_are_given() -> None:
    """Speeds 100, 100 and 200 over six layers of 1 GFLOP come to 1, 1 and 4."""
    text = '[placement]\nn_layers = 6\npolicy = "auto"\nlayer_bytes = 9\nlayer_flops = 1e9\n'
    machines = [
        host(name, 20, gflops=speed) for name, speed in (("a", 100), ("b", 100), ("c", 200))
    ]

    assert layers(settle(text, *machines)) == ["0:1", "1:2", "2:6"]


def test_latency_needs_the_size_of_a_layer() -> None:
    """Without it every node holds everything, and the first would get it all."""
    text = f'{PLACEMENT}[placement.objective]\noptimize = "latency"\n'
    with pytest.raises(CompileError, match=r"latency .* is not supported without layer_bytes"):
        settle(text, *EQUAL)

    sized = text.replace("12\n", "12\nlayer_bytes = 2_000_000_000\n")
    assert layers(settle(sized, *EQUAL)) == ["0:7", "7:12", "12:12"]


def test_a_model_that_does_not_fit_is_refused_at_its_key() -> None:
    """14 GB hold seven layers of 2 GB each."""
    text = "[placement]\nn_layers = 32\nlayer_bytes = 2_000_000_000\n"

    with pytest.raises(CompileError, match=r"n_layers: 32 layers .* for 21 \(a 7, b 7, c 7\)"):
        settle(text, *EQUAL)


def test_stages_follow_the_ranks() -> None:
    """Rank 0 has the first layers, wherever its node stands in the file; slots share theirs."""
    nodes = HOSTS.replace('ssh = "c"\n', 'ssh = "c"\nrank = 0\nslots = 2\ndevice = "cpu"\n')

    found = settle(PLACEMENT, *EQUAL, nodes=nodes)

    assert [(seat.node, seat.share.layers) for seat in found.seats] == [
        *(("c", "0:4"), ("c", "0:4"), ("a", "4:8"), ("b", "8:12")),
    ]


def test_an_unmanaged_node_needs_its_memory_written() -> None:
    """Nobody may ask it, so the person has to say."""
    nodes = f'{HOSTS}[[node]]\naddr = "10.0.0.9:29500"\nmanaged = false\n'
    with pytest.raises(CompileError, match=r"max_ram_gb: .* is not asked for its memory"):
        settle(PLACEMENT, *EQUAL, nodes=nodes)

    found = settle(PLACEMENT, *EQUAL, nodes=f"{nodes}max_ram_gb = 20\n")
    assert layers(found) == ["0:3", "3:6", "6:9", "9:12"]


def with_mark(facts: HostFacts, resolution: Resolution, *ranks: int) -> HostFacts:
    """Return the machine with *resolution* deployed on it, and less memory free than before."""
    mark = replace(deployed(*ranks), placement=resolution.placement)
    hardware = replace(facts.hardware, ram_avail=facts.hardware.ram_avail // 3)
    return replace(facts, job=replace(facts.job, deployed=mark), hardware=hardware)


def test_what_is_deployed_stays_while_the_same_is_asked() -> None:
    """The job's own memory does not move its layers; another question does."""
    first = settle(PLACEMENT, host("a", 30), host("b", 20), host("c", 20))
    later = [with_mark(host("a", 30), first, 0), host("b", 20), host("c", 20)]

    again = settle(PLACEMENT, *later)
    other = settle(PLACEMENT.replace("12", "24"), *later)

    assert layers(again) == layers(first) == ["0:6", "6:9", "9:12"]
    assert again.seats[0].why["layers"].startswith("as deployed")
    assert again.placement == first.placement
    assert layers(other) == ["0:3", "3:14", "14:24"]


def test_a_newly_measured_speed_is_a_new_question() -> None:
    """Layers that were shared out blindly are shared out again once somebody has measured."""
    text = f'{PLACEMENT}policy = "throughput"\n'
    first = settle(text, *EQUAL)
    measured = [host(name, 20, gflops=speed) for name, speed in (("a", 10), ("b", 20), ("c", 30))]

    later = settle(text, with_mark(measured[0], first, 0), *measured[1:])

    assert layers(first) == ["0:4", "4:8", "8:12"]
    assert layers(later) == ["0:2", "2:6", "6:12"]


def test_a_speed_counts_for_nothing_where_memory_decides() -> None:
    """Under ram_balanced no measurement is a new question."""
    first = settle(PLACEMENT, *EQUAL)
    measured = [host(name, 20, gflops=speed) for name, speed in (("a", 10), ("b", 20), ("c", 30))]

    again = settle(PLACEMENT, with_mark(measured[0], first, 0), *measured[1:])

    assert (layers(again), again.placement) == (layers(first), first.placement)
    assert "speeds measured" not in notices(again)


@pytest.mark.parametrize("policy", ["throughput", "auto"])
def test_shares_by_speed_stay_where_nobody_knows_the_speeds_any_more(policy: str) -> None:
    """Another controller has no measurement, and moves no layer for want of it."""
    text = f'{PLACEMENT}policy = "{policy}"\nlayer_bytes = 9\nlayer_flops = 1e9\n'
    measured = [host(name, 20, gflops=speed) for name, speed in (("a", 10), ("b", 20), ("c", 30))]
    first = settle(text, *measured)

    again = settle(text, with_mark(EQUAL[0], first, 0), *EQUAL[1:])

    assert layers(first) == ["0:2", "2:6", "6:12"]
    assert (layers(again), again.placement) == (layers(first), first.placement)


def test_a_saved_plan_keeps_its_shares() -> None:
    """As long as it answers what is asked: it was shown, and is carried out so."""
    text = f'{PLACEMENT}policy = "throughput"\n'
    measured = [host(name, 20, gflops=speed) for name, speed in (("a", 10), ("b", 20), ("c", 30))]
    planned = settle(text, *measured)
    saved = replace(CONTROLLER, planned=planned.placement)

    later = resolve(load(f"{text}\n{HOSTS}"), survey(*EQUAL), saved)
    other = resolve(load(f"{PLACEMENT}\n{HOSTS}"), survey(*EQUAL), saved)

    assert layers(later) == ["0:2", "2:6", "6:12"]
    assert later.seats[0].why["layers"].startswith("as planned")
    assert layers(other) == ["0:4", "4:8", "8:12"]


def test_a_plan_says_when_its_speeds_were_measured() -> None:
    """The day, or the first and the last one; and why a node was not."""
    text = f'{PLACEMENT}policy = "throughput"\n'
    machines = [
        replace(one, hardware=replace(one.hardware, gflops=9.0, measured_at=at))
        for one, at in zip(EQUAL, (1.7e9, 1.8e9, 1.75e9), strict=True)
    ]
    blind = replace(
        EQUAL[2], hardware=replace(EQUAL[2].hardware, unmeasured={"processor": "no numpy"})
    )

    assert "speeds measured on 2023-11-14 to 2027-01-15" in notices(settle(text, *machines))
    told = notices(settle(text, machines[0], machines[0 + 1], blind))
    assert "nobody measured how fast c (no numpy) is" in told
    assert "measure once with probe --bench" in told


STANDBYS = HOSTS.replace('ssh = "a"\n', 'ssh = "a"\naddr = "10.0.0.1:29500"\n') + (
    '[[node]]\nssh = "d"\nrole = "standby"\n'
)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('standby_for = "10.0.0.1:29500"\n', "d stands by with layers 0:3, those of a"),
        ("", "d stands by with layers 6:12, those of c"),
    ],
    ids=["of its principal", "of the largest"],
)
def test_a_standby_is_told_with_its_principal_s_layers(written: str, told: str) -> None:
    """It has no rank and no variables, but whoever prepares it knows what it will hold."""
    machines = (host("a", 16), host("b", 16), host("c", 26), host("d", 99))

    found = settle(PLACEMENT, *machines, nodes=STANDBYS + written)

    assert layers(found) == ["0:3", "3:6", "6:12"]
    assert told in notices(found)


def test_without_a_number_of_layers_nothing_is_shared_out() -> None:
    """Then no rank gets LAYERS, as upstream's own files have it."""
    assert layers(settle('[placement]\npolicy = "throughput"\n', *EQUAL)) == [None, None, None]


def test_the_machine_s_processor_is_no_accelerator() -> None:
    """A cpu entry with a size, as some report it, does not bound the memory."""
    odd = host("a", 24)
    devices = (replace(CPU, mem_bytes=2 * GIB),)
    odd = replace(odd, hardware=replace(odd.hardware, devices=devices))

    assert layers(settle(PLACEMENT, odd, host("b", 24), host("c", 24))) == ["0:4", "4:8", "8:12"]
