"""The variables that belong to rlxdeploy and to the transport; nobody else may set them."""

_BRING_UP = """
    RANK WORLD PEERS TOPOLOGY DIAL_OUT HEAP_MB DISCOVER DISC_PORT DATA_PORT DISCOVER_HOST
"""
_RANK = "DEVICE CKPT_DIR PRECISION KV_CACHE RNG_SEED LAYERS MAX_RAM_GB ROLE"
_TORCHRUN = "MASTER_ADDR MASTER_PORT WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK"
_DEVICES = """
    CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES ONEAPI_DEVICE_SELECTOR
    ZE_AFFINITY_MASK
"""
_RUNTIME = """
    RLX_JOB RLX_PLAN RLX_WIRE RLX_BIND RLX_SECURITY RLX_KEY_FILE RLX_STATE_FILE RLX_JOIN_TIMEOUT
    RLX_PEER_TIMEOUT PYTHONPATH
"""
_SUPERVISION = "NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID"

OURS = frozenset(
    f"{_BRING_UP} {_RANK} {_TORCHRUN} {_DEVICES} {_RUNTIME} {_SUPERVISION}".split(),
)


def check_ours(name: str) -> str:
    """Return *name* if a person may set it; raise ValueError if it is ours."""
    if name in OURS:
        raise ValueError(f"rlxdeploy sets {name} itself")
    return name
