"""Generated inventories: every key, any of them left out."""

from typing import Any

from hypothesis import strategies as st

from rlxdeploy.model import vocabulary as words
from rlxdeploy.model.inventory import Inventory

SLUGS = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True).filter("store".__ne__)
LINES = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF, categories=["L", "N", "P"]))
TEXTS = LINES.filter(bool)
CONTENTS = st.text(st.sampled_from("ab \t\n\"'\\$%é😀#[]="), max_size=20)
COUNTS = st.integers(1, 100_000)
PORTS = st.integers(1, 65535)
SECONDS = st.one_of(st.integers(1, 600), st.floats(0.001, 600))
AMOUNTS = st.one_of(st.integers(0, 10**12), st.floats(0, 1e12))
SEEDS = st.integers(0, 2**64 - 1)
ADDRESSES = st.sampled_from(
    ["10.0.0.5", "gpu-a:29500", "[fd00::5]:29500", "fd00::5", "fe80::1%eth0"]
)
DEVICES = st.sampled_from(["cuda", "CUDA + cpu", "nvidia;cpu", " metal"])
PRECISIONS = st.sampled_from(["bf16", " f16 ", "f8e4m3", "q8_0"])
CIDRS = st.sampled_from(["10.0.5.0/24", "10.0.5.7/31", "fd00::/120"])
SECRETS = st.sampled_from([{"from": "env:TOKEN"}, {"from": "file:a b/token"}])
ENVIRONMENTS = st.dictionaries(
    st.from_regex(r"[A-Z]_[A-Za-z0-9_]{0,6}", fullmatch=True), CONTENTS | SECRETS, max_size=3
)


def table(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keys)


JOB_FILES = st.fixed_dictionaries(
    {"source": TEXTS, "dest": st.sampled_from(["a.py", "conf/b c.toml"])},
    optional={"mode": st.sampled_from(["0640", "755"]), "template": st.booleans()},
)
JOBS = table(
    name=SLUGS,
    topology=st.sampled_from(list(map(str, words.Topology))),
    command=st.lists(CONTENTS, min_size=1, max_size=3),
    workdir=st.just("/srv/train"),
    env=ENVIRONMENTS,
    heap_mb=st.integers(1, 4095),
    files=st.lists(JOB_FILES, max_size=2),
    user=st.just("ml"),
    launch=st.sampled_from(list(map(str, words.Launch))),
    ready=st.sampled_from(list(map(str, words.Ready))),
    restart=st.sampled_from(list(map(str, words.Restart))),
    boot=st.booleans(),
    expect=COUNTS,
    min_nodes=COUNTS,
    join_timeout=SECONDS,
    revert_after=SECONDS,
    peer_timeout=SECONDS,
    wire=st.sampled_from(list(map(str, words.Wire))),
    security=st.sampled_from(list(map(str, words.Security))),
    hardening=st.sampled_from(list(map(str, words.Hardening))),
    device_env=st.sampled_from(list(map(str, words.DeviceEnv))),
)
SSH = table(
    user=st.just("ml"),
    port=PORTS,
    config=TEXTS,
    identity=TEXTS,
    client=st.sampled_from(list(map(str, words.SshClient))),
    forks=COUNTS,
    connect_timeout=SECONDS,
    host_keys=st.sampled_from(list(map(str, words.HostKeys))),
    become=st.sampled_from(list(map(str, words.Become))),
)
NETWORKS = table(interface=st.just("eth1"), cidr=CIDRS, data_port=PORTS, master_port=PORTS)
RUNTIMES = table(python=TEXTS, provision=st.sampled_from(list(map(str, words.Provision))))
DISCOVERIES = table(
    ssh_hosts=st.lists(st.sampled_from(["gpu-a", "me@gpu-b"]), max_size=2),
    subnet=CIDRS,
    port=PORTS,
    ckpt_dir=TEXTS,
    device=DEVICES,
    precision=PRECISIONS,
    timeout_ms=COUNTS,
    mdns=st.booleans(),
    browse_s=SECONDS,
    advertise=st.booleans(),
    probe=st.booleans(),
    scan_ports=st.lists(PORTS, min_size=1, max_size=2),
    exclude=st.lists(st.sampled_from(["10.0.5.1", "10.0.0.0/8", "gw"]), max_size=2),
    max_hosts=COUNTS,
)
OBJECTIVES = table(
    optimize=st.sampled_from(list(map(str, words.Optimize))),
    context=COUNTS,
    hop_secs=AMOUNTS,
    kv_bytes_per_layer_token=SEEDS,
    on_unknown_kv=st.sampled_from(list(map(str, words.UnknownKv))),
    kv_dtype=TEXTS,
    precision_ladder=st.lists(PRECISIONS, max_size=3),
)
PLACEMENTS = table(
    policy=st.sampled_from(list(map(str, words.Policy))),
    objective=OBJECTIVES,
    n_layers=COUNTS,
    layer_bytes=SEEDS,
    layer_flops=AMOUNTS,
)
NODES = table(
    addr=ADDRESSES,
    ssh=st.just("gpu-a"),
    ckpt_dir=TEXTS,
    device=DEVICES,
    precision=PRECISIONS,
    kv_cache=st.sampled_from(list(map(str, words.KvCache))),
    rng_seed=SEEDS,
    max_ram_gb=AMOUNTS,
    layers=st.sampled_from(["0:16", " 4 : 4 "]),
    role=st.sampled_from(list(map(str, words.Role))),
    standby_for=ADDRESSES,
    name=SLUGS,
    rank=st.integers(0, 65535),
    slots=st.integers(1, 1024),
    tags=st.lists(SLUGS, max_size=2),
    env=ENVIRONMENTS,
    python=TEXTS,
    bind=st.sampled_from(["10.0.0.5", "::1"]),
    managed=st.booleans(),
)
DOCUMENTS = table(
    model=TEXTS,
    seq=COUNTS,
    rng_seed=SEEDS,
    reserve_ram_gb=AMOUNTS,
    job=JOBS,
    ssh=SSH,
    network=NETWORKS,
    runtime=RUNTIMES,
    discover=DISCOVERIES,
    placement=PLACEMENTS,
    node=st.lists(NODES, max_size=3),
)
INVENTORIES = DOCUMENTS.map(Inventory.model_validate)
