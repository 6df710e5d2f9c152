"""Reading an inventory file: what loads, and what is said about what does not."""

from pathlib import Path

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlxdeploy.edge.inventory import missing_sources, read_inventory
from rlxdeploy.errors import Finding, InventoryError, Place, Severity
from rlxdeploy.model.inventory import TABLES, Secret
from rlxdeploy.model.vocabulary import KvCache, Optimize, Policy, Role, UnknownKv

CLUSTER = Path(__file__).resolve().parents[2] / "inventories" / "cluster.toml"


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "inventory.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def findings_of(path: Path) -> list[str]:
    """Return what is said about the file, each with its line and column."""
    with pytest.raises(InventoryError) as caught:
        read_inventory(path)
    return [str(finding).removeprefix(f"{path}:") for finding in caught.value.findings]


def test_a_public_cluster_file_loads_unchanged() -> None:
    """Every key that upstream's file has arrives as it was written."""
    inventory = read_inventory(CLUSTER).inventory
    objective = inventory.placement.objective
    first, second, third, fourth = inventory.node

    assert (inventory.model, inventory.seq, inventory.rng_seed) == ("org/model-gguf", 8, 42)
    assert inventory.reserve_ram_gb == 2
    assert inventory.placement.policy is Policy.AUTO
    assert (objective.optimize, objective.context) == (Optimize.THROUGHPUT, 32768)
    assert (objective.hop_secs, objective.kv_bytes_per_layer_token) == (0.002, 2048)
    assert (objective.on_unknown_kv, objective.kv_dtype) == (UnknownKv.FAIL, "f16")
    assert objective.precision_ladder == ("f16", "mxfp4")
    assert inventory.discover.ssh_hosts == ("gpu-c", "gpu-d")
    assert inventory.discover.subnet == "10.0.5.0/28"
    assert (first.device, first.layers) == ("metal+cpu", "0:16")
    assert (second.device, second.kv_cache) == ("nvidia, cpu", KvCache.DEVICE)
    assert (second.max_ram_gb, second.rng_seed) == (40, 7)
    assert (third.role, third.standby_for) == (Role.STANDBY, second.addr)
    assert fourth.role is Role.DRAINING


REFUSED = {
    "an unknown key": ("ndoe = 1", "1:1: ndoe: unknown key; did you mean 'node'?"),
    "an unknown key, unlike any": (
        "[runtime]\nzzz = 1",
        "2:1: runtime.zzz: unknown key; known here: python, provision",
    ),
    "a key of another table": (
        'topology = "star"',
        "1:1: topology: unknown key; it belongs in [job]",
    ),
    "a top-level key after a header": (
        "[job]\nseq = 8",
        "2:1: job.seq: unknown key; it belongs at the top, above the first [table]",
    ),
    "a key of an array of tables": (
        "[job]\nslots = 8",
        "2:1: job.slots: unknown key; it belongs in [[node]]",
    ),
    "a quoted unknown key": ("[ssh]\n'user name' = 1", '2:1: ssh."user name": unknown key'),
    "a dotted unknown key": ("job . nmae = 1", "1:7: job.nmae: unknown key; did you mean 'name'?"),
    "a port of true": (
        "[network]\ndata_port = true",
        "2:1: network.data_port: expected a whole number, not true",
    ),
    "a port in quotes": (
        '[network]\ndata_port = "9100"',
        "2:1: network.data_port: expected a whole number, not the string '9100'",
    ),
    "a port with a fraction": (
        "[network]\ndata_port = 9100.0",
        "2:1: network.data_port: expected a whole number, not the number 9100.0",
    ),
    "port zero": (
        "[network]\ndata_port = 0",
        "2:1: network.data_port: it must be at least 1, not 0",
    ),
    "a port past the last": (
        "[network]\ndata_port = 65536",
        "2:1: network.data_port: it must be at most 65535, not 65536",
    ),
    "a duration of true": (
        "[job]\njoin_timeout = true",
        "2:1: job.join_timeout: expected a number, not true",
    ),
    "no duration": (
        "[job]\njoin_timeout = 0",
        "2:1: job.join_timeout: it must be more than 0, not 0",
    ),
    "an endless duration": (
        "[job]\njoin_timeout = inf",
        "2:1: job.join_timeout: it must be a finite number",
    ),
    "not a number": ("reserve_ram_gb = nan", "1:1: reserve_ram_gb: it must be a finite number"),
    "a word outside the vocabulary": (
        '[job]\nready = "notfy"',
        "2:1: job.ready: 'notfy' is none of auto, notify, exec; did you mean 'notify'?",
    ),
    "a word of another kind": (
        "[job]\ntopology = 1",
        "2:1: job.topology: expected one of mesh, star, not the number 1",
    ),
    "a flag in quotes": (
        '[discover]\nmdns = "yes"',
        "2:1: discover.mdns: expected true or false, not the string 'yes'",
    ),
    "a word for a list": (
        '[job]\ncommand = "python3 a.py"',
        "2:1: job.command: expected a list, not the string 'python3 a.py'",
    ),
    "an empty command": ("[job]\ncommand = []", "2:1: job.command: it is an empty list"),
    "one node in single brackets": (
        '[node]\naddr = "10.0.0.5"',
        "1:2: node: expected a list of tables, each headed [[node]], not a table",
    ),
    "a table that is a number": ("job = 1", "1:1: job: expected a table, not the number 1"),
    "a date": (
        "model = 1979-05-27",
        "1:1: model: expected a string, in quotes, not a date or time",
    ),
    "an element of a list": (
        "[discover]\nscan_ports = [\n  22,\n  0,\n]",
        "4:3: discover.scan_ports[1]: it must be at least 1, not 0",
    ),
    "a variable of ours": (
        '[job]\nenv.RANK = "1"',
        "2:5: job.env.RANK: rlxdeploy sets RANK itself",
    ),
    "a variable that is a number": (
        "[job]\nenv.THREADS = 4",
        "2:5: job.env.THREADS: expected a string, in quotes, not a number",
    ),
    "a control character in a variable": (
        '[job]\nenv.A = "a\\u0007"',
        "2:5: job.env.A: the character U+0007 does not survive a unit file",
    ),
    "a noncharacter in a variable": (
        '[[node]]\nenv.A = "\\uFDD0"',
        "2:5: node[0].env.A: the character U+FDD0 does not survive a unit file",
    ),
    "a secret from nowhere": (
        '[job]\nenv.A = { from = "vault:x" }',
        '2:11: job.env.A.from: write "env:NAME" or "file:PATH"',
    ),
    "a file without a destination": (
        '[[job.files]]\nsource = "a"',
        "1:7: job.files[0].dest: it is missing",
    ),
    "a destination outside": (
        '[[job.files]]\nsource = "a"\ndest = "../a"',
        "3:1: job.files[0].dest: write a plain relative path, without .. or a closing slash",
    ),
    "a mode that is a number": (
        '[[job.files]]\nsource = "a"\ndest = "a"\nmode = 640',
        "4:1: job.files[0].mode: expected a string, in quotes, not the number 640",
    ),
    "a job called store": (
        '[job]\nname = "store"',
        "2:1: job.name: 'store' is the name of a folder beside the jobs; choose another",
    ),
    "an SSH host that is an option": (
        '[[node]]\nssh = "-oProxyCommand=x"',
        "2:1: node[0].ssh: it goes on ssh's command line: no blanks, and no hyphen in front",
    ),
    "an unknown device": (
        '[[node]]\ndevice = "cuda+warp"',
        "2:1: node[0].device: bad device 'cuda+warp': unknown device 'warp'",
    ),
    "an empty device list": (
        '[[node]]\ndevice = " "',
        "2:1: node[0].device: bad device ' ': it names none",
    ),
    "a bad range of layers": (
        '[[node]]\nlayers = "16:0"',
        "2:1: node[0].layers: bad layers '16:0': write first:end, half open, as in '0:16'",
    ),
    "a subnet without a prefix": (
        '[discover]\nsubnet = "10.0.5.0"',
        "2:1: discover.subnet: '10.0.5.0' lacks its prefix, as in '10.0.5.0/24'",
    ),
    "no TOML": ("[job\n", "1:5: expected ']' at the end of a table declaration"),
    "a key given twice": ("seq = 1\nseq = 2", "2:8: cannot overwrite a value"),
    "an unfinished text": ('model = "abc', "1:13: unterminated string"),
    "a byte that is no UTF-8": (b"# \xc3\xa9\nmodel = '\xe9'", "2:10: it is not UTF-8 here"),
}


@pytest.mark.parametrize(("content", "told"), REFUSED.values(), ids=REFUSED.keys())
def test_a_mistake_is_shown_where_it_stands(
    content: str | bytes, told: str, tmp_path: Path
) -> None:
    """Line, column, key, what is wrong and, where there is one, the way out."""
    (finding,) = findings_of(write(tmp_path, content))

    assert finding.startswith(told)


UPSTREAM_CASES = {
    "unknown precision": ('[[node]]\nprecision = "f9"', "unknown precision"),
    "half a float layout": ('[[node]]\nprecision = "f8e4"', "unknown precision"),
    "unknown precision found": ('[discover]\nprecision = "bf"', "unknown precision"),
    "unknown rung": ('[placement.objective]\nprecision_ladder = ["f8m3"]', "unknown precision"),
    "bad device found": ('[discover]\ndevice = "warp"', "bad device"),
    "prefix below 16": ('[discover]\nsubnet = "10.0.0.0/15"', "/16"),
    "prefix above 32": ('[discover]\nsubnet = "10.0.0.0/33"', "prefix"),
    "no prefix": ('[discover]\nsubnet = "10.0.0.0"', "prefix"),
    "unknown policy": ('[placement]\npolicy = "best"', "none of"),
    "unknown goal": ('[placement.objective]\noptimize = "speed"', "none of"),
    "unknown answer": ('[placement.objective]\non_unknown_kv = "ask"', "none of"),
    "unknown cache": ('[[node]]\nkv_cache = "disk"', "none of"),
    "unknown role": ('[[node]]\nrole = "spare"', "none of"),
    "a negative seed": ("rng_seed = -1", "at least 0"),
    "text for memory": ('[[node]]\nmax_ram_gb = "40"', "expected a number"),
}


@pytest.mark.parametrize(("content", "told"), UPSTREAM_CASES.values(), ids=UPSTREAM_CASES.keys())
def test_what_upstream_refuses_is_refused(content: str, told: str, tmp_path: Path) -> None:
    """A cluster file that is an error there is an error here."""
    (finding,) = findings_of(write(tmp_path, content))

    assert told in finding


def test_all_mistakes_are_shown_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    """One run is enough to see all there is to mend."""
    path = write(tmp_path, 'seq = 0\n[job]\nheap_mb = "1"\nnmae = "x"\n[[node]]\nrank = -1\n')

    assert [finding.split(": ")[1] for finding in findings_of(path)] == [
        "seq",
        "job.heap_mb",
        "job.nmae",
        "node[0].rank",
    ]


def test_a_value_that_may_be_secret_is_not_shown(tmp_path: Path) -> None:
    """What stands in an environment does not reach the screen by way of an error."""
    path = write(tmp_path, '[job]\nenv.TOKEN = 31337\nenv.KEY = { from = "31337" }\n')

    assert not any("31337" in finding for finding in findings_of(path))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """A file that was named and is not there never turns into a local run (DeepSpeed #5221)."""
    path = tmp_path / "hosts.toml"

    assert findings_of(path) == [" there is no such file"]


def test_a_folder_is_no_inventory(tmp_path: Path) -> None:
    """The way out is named."""
    assert findings_of(tmp_path) == [" it is a folder; name the inventory file in it"]


def test_a_byte_order_mark_is_dropped_with_a_notice(tmp_path: Path) -> None:
    """Columns count as if it were not there."""
    loaded = read_inventory(write(tmp_path, b"\xef\xbb\xbfseq = 9\n"))

    assert loaded.inventory.seq == 9
    assert loaded.place_of(("seq",)).column == 1
    assert [notice.severity for notice in loaded.notices] == [Severity.NOTICE]


def test_a_deep_nest_is_an_error_and_no_crash(tmp_path: Path) -> None:
    """A file cannot bring the reader down."""
    path = write(tmp_path, f"model = {'[' * 9999}{']' * 9999}")

    assert findings_of(path) == [" it is nested too deeply"]


def test_a_number_of_absurd_length_is_an_error_and_no_crash(tmp_path: Path) -> None:
    """Python refuses to read such a number, and that is told as a finding."""
    (finding,) = findings_of(write(tmp_path, f"seq = {'9' * 5000}"))

    assert "4300" in finding


def test_numbers_that_are_whole_do_for_those_that_need_not_be(tmp_path: Path) -> None:
    """`max_ram_gb = 44` is as good as 44.0."""
    loaded = read_inventory(write(tmp_path, "[job]\njoin_timeout = 3\n[[node]]\nmax_ram_gb = 44\n"))

    assert loaded.inventory.job.join_timeout == 3.0
    assert loaded.inventory.node[0].max_ram_gb == 44.0


def test_later_stages_can_point_at_what_was_written(tmp_path: Path) -> None:
    """A written key has its own place; an unwritten one has that of the table around it."""
    path = write(tmp_path, '\n[[node]]\naddr = "a"\n[[node]]\nenv.T = { from = "env:T" }\n')
    loaded = read_inventory(path)

    assert loaded.place_of(("node", 0, "addr")) == Place(str(path), 3, 1)
    assert loaded.place_of(("node", 1, "addr")) == Place(str(path), 4, 3)
    assert loaded.place_of(("job", "name")) == Place(str(path))
    assert loaded.written(("node", 0, "addr"))
    assert not loaded.written(("node", 1, "addr"))
    assert loaded.inventory.node[1].env["T"] == Secret.model_validate({"from": "env:T"})
    assert loaded.job == tmp_path.name.replace("_", "-")


def test_a_file_of_the_job_that_is_not_there_is_noticed(tmp_path: Path) -> None:
    """Sources are looked for beside the inventory."""
    (tmp_path / "here.py").touch()
    path = write(
        tmp_path,
        '[[job.files]]\nsource = "here.py"\ndest = "a"\n'
        '[[job.files]]\nsource = "gone.py"\ndest = "b"\n',
    )

    (finding,) = missing_sources(read_inventory(path))

    assert str(finding) == f"{path}:5:1: job.files[1].source: there is no file gone.py"
    assert finding.severity is Severity.WARNING


NAMES = sorted({"from", "A", *(name for model in TABLES.values() for name in model.model_fields)})
SCALARS = st.one_of(
    st.text(max_size=6), st.integers(), st.floats(), st.booleans(), st.dates(), st.just("auto")
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=15,
)


@given(st.dictionaries(st.sampled_from(NAMES), ANYTHING).map(tomli_w.dumps) | st.binary())
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_stands_in_a_file_is_an_inventory_or_an_inventory_error(
    tmp_path: Path, content: str | bytes
) -> None:
    """No text makes the reader fail in another way, and every finding of a text has its line."""
    findings: tuple[Finding, ...] = ()
    try:
        read_inventory(write(tmp_path, content))
    except InventoryError as error:
        findings = error.findings

    assert all(finding.place is not None and finding.place.line > 0 for finding in findings)
