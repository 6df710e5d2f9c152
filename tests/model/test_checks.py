"""What is wrong with an inventory as a whole."""

import time
import tomllib
from pathlib import Path

import pytest

from rlxdeploy.errors import Finding, Severity
from rlxdeploy.model.checks import check
from rlxdeploy.model.inventory import Inventory
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import locate
from rlxdeploy.model.unsupported import unsupported, without_effect


def loaded(text: str, path: str = "/lab/train.toml") -> Loaded:
    """Return what reading *text* at *path* gives, without a file."""
    inventory = Inventory.model_validate(tomllib.loads(text))
    return Loaded(Path(path), "t", inventory, locate(text))


def told(findings: tuple[Finding, ...], severity: Severity) -> list[str]:
    return [str(finding) for finding in findings if finding.severity is severity]


def errors_in(text: str) -> list[str]:
    return told(check(loaded(text)), Severity.ERROR)


ERRORS = {
    "no node": ("seq = 8", "t: node: there is no [[node]]; write one, or say in [discover]"),
    "no active node": ('[[node]]\nrole = "draining"', "t:1:3: node: no node is active"),
    "one name twice": (
        '[[node]]\nname = "a"\n[[node]]\nname = "a"',
        "t:4:1: node[1].name: 'a' is already the node at t:2:1",
    ),
    "one rank twice": (
        "[[node]]\nrank = 1\n[[node]]\nrank = 1",
        "t:4:1: node[1].rank: rank 1 is also pinned at t:2:1",
    ),
    "a rank within another's slots": (
        "[[node]]\nrank = 2\n[[node]]\nslots = 4\nrank = 0",
        "t:5:1: node[1].rank: rank 2 is also pinned at t:2:1",
    ),
    "a rank past the last": (
        "[[node]]\n[[node]]\nrank = 2",
        "t:3:1: node[1].rank: rank 2 does not exist among 2 ranks",
    ),
    "slots past the last rank": (
        "[[node]]\nrank = 1\nslots = 2",
        "t:2:1: node[0].rank: rank 2 does not exist among 2 ranks",
    ),
    "a pinned standby": (
        '[[node]]\n[[node]]\nrole = "standby"\nrank = 1',
        "t:4:1: node[1].rank: a standby node has no rank to pin",
    ),
    "one address twice": (
        '[[node]]\naddr = "A:1"\n[[node]]\naddr = "a:1"',
        "t:4:1: node[1].addr: a:1 is also taken at t:2:1",
    ),
    "one IPv6 address twice": (
        '[[node]]\naddr = "[::1]:7"\n[[node]]\naddr = "[0::1]:7"',
        "t:4:1: node[1].addr: [::1]:7 is also taken at t:2:1",
    ),
    "an address within another's slots": (
        '[[node]]\naddr = "a:5"\nslots = 3\n[[node]]\naddr = "a:7"',
        "t:5:1: node[1].addr: a:7 is also taken at t:2:1",
    ),
    "slots past the last port": (
        '[[node]]\naddr = "a:65535"\nslots = 2',
        "t:2:1: node[0].addr: 2 slots from port 65535 on pass 65535",
    ),
    "an address that cannot be dialled": (
        '[[node]]\naddr = "0.0.0.0:1"',
        "t:2:1: node[0].addr: 0.0.0.0 can be listened on but not dialled; write it as bind",
    ),
    "a zone between machines": (
        '[[node]]\naddr = "fe80::1%eth0"\n[[node]]\nssh = "b"\naddr = "fe80::2"',
        "t:2:1: node[0].addr: the zone %eth0 means nothing on another machine",
    ),
    "a standby for nobody": (
        '[[node]]\naddr = "a:1"\n[[node]]\nrole = "standby"\nstandby_for = "a:2"',
        "t:5:1: node[1].standby_for: no active node has the addr 'a:2'",
    ),
    "manual placement without layers": (
        '[placement]\npolicy = "manual"\n[[node]]\nlayers = "0:1"\n[[node]]',
        "t:5:3: node[1].layers: policy manual needs it on every node",
    ),
    "a program without a name": (
        '[job]\ncommand = ["", "a"]\n[[node]]',
        "t:2:12: job.command[0]: the program's name is empty",
    ),
    "reverting before joining": (
        "[job]\nrevert_after = 120\n[[node]]",
        "t:2:1: job.revert_after: hosts would go back before join_timeout (120 s) has passed",
    ),
    "more nodes expected": (
        "[job]\nexpect = 2\n[[node]]",
        "t:2:1: job.expect: 2 expected, 1 active written",
    ),
    "more nodes needed than expected": (
        "[job]\nexpect = 1\nmin_nodes = 2\n[[node]]",
        "t:3:1: job.min_nodes: it is more than expect (1)",
    ),
    "two files at one place": (
        '[job]\nfiles = [{source="a", dest="x"}, {source="b", dest="x"}]\n[[node]]',
        "t:2:47: job.files[1].dest: another file already goes to x",
    ),
    "a file where a folder is needed": (
        '[job]\nfiles = [{source="a", dest="x"}, {source="b", dest="x/y"}]\n[[node]]',
        "t:2:23: job.files[0].dest: x/y needs a folder there",
    ),
    "the rlx wire with a key": (
        '[job]\nwire = "rlx"\nsecurity = "psk"\n[[node]]',
        't:3:1: job.security: the rlx wire has no psk; write security = "none"',
    ),
    "the rlx wire in the open": (
        '[job]\nwire = "rlx"\n[[node]]\naddr = "10.0.0.5:1"',
        "t:4:1: node[0].addr: the rlx wire is unprotected, and 10.0.0.5:1 is not loopback",
    ),
    "the rlx wire bound in the open": (
        '[job]\nwire = "rlx"\n[[node]]\naddr = "127.0.0.1:1"\nbind = "::"',
        "t:5:1: node[0].bind: the rlx wire is unprotected, and :: is not loopback",
    ),
    "one port for two purposes": (
        "[network]\nmaster_port = 29500\n[[node]]",
        "t:2:1: network.master_port: master_port and data_port are both 29500",
    ),
}


@pytest.mark.parametrize(("text", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_a_contradiction_is_an_error(text: str, message: str) -> None:
    """It is found from the text alone, with the lines of both sides."""
    (error,) = errors_in(text)

    assert error.startswith(message)


SOUND = {
    "one node": "[[node]]",
    "discovery alone": '[discover]\nssh_hosts = ["a"]',
    "pins in any order": "[[node]]\nrank = 2\n[[node]]\nrank = 0\nslots = 2",
    "one host, two ports": '[[node]]\naddr = "a:1"\n[[node]]\naddr = "a:2"',
    "one host, no port written": '[[node]]\naddr = "a"\n[[node]]\naddr = "a"',
    "a star's workers share a private address": (
        '[job]\ntopology = "star"\n[[node]]\naddr = "a:1"\n'
        '[[node]]\naddr = "192.168.1.2:1"\n[[node]]\naddr = "192.168.1.2:1"'
    ),
    "a star's rank 0 on loopback": (
        '[job]\ntopology = "star"\nwire = "rlx"\n[[node]]\naddr = "10.0.0.5"\n'
        '[[node]]\nrank = 0\naddr = "127.0.0.1:1"'
    ),
    "the rlx wire on loopback": '[job]\nwire = "rlx"\n[[node]]\naddr = "[::1]:1"',
    "the rlx wire in the open, as written": (
        '[job]\nwire = "rlx"\nsecurity = "none"\n[[node]]\naddr = "10.0.0.5:1"'
    ),
    "a standby": (
        '[[node]]\naddr = "[::1]:1"\n[[node]]\nrole = "standby"\nstandby_for = "[0::1]:1"'
    ),
    "a standby of a node yet to be found": (
        '[discover]\nssh_hosts = ["a"]\n[[node]]\nrole = "standby"\nstandby_for = "a:9100"'
    ),
    "a zone on one machine": '[[node]]\naddr = "fe80::1%eth0"\n[[node]]\naddr = "fe80::2%eth0"',
    "files in one folder": (
        '[job]\nfiles = [{source="a", dest="x/a"}, {source="b", dest="x/b"}]\n[[node]]'
    ),
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND.keys())
def test_what_fits_together_passes(text: str) -> None:
    """No check is stricter than it has to be."""
    assert errors_in(text) == []


WARNINGS = {
    "root": ('[job]\nuser = "root"\n[[node]]', "t:2:1: job.user: the ranks run as root"),
    "hidden devices": (
        '[job]\nhardening = "strict"\n[[node]]\ndevice = "nvidia+cpu"',
        "t:4:1: node[0].device: hardening strict hides cuda from the ranks;",
    ),
    "a principal without a standby": (
        '[[node]]\nstandby_for = "a:1"',
        "t:2:1: node[0].standby_for: it has no effect: role is active",
    ),
}


@pytest.mark.parametrize(("text", "message"), WARNINGS.values(), ids=WARNINGS.keys())
def test_what_may_be_meant_is_a_warning(text: str, message: str) -> None:
    """The inventory still passes."""
    findings = check(loaded(text))

    assert [one.startswith(message) for one in told(findings, Severity.WARNING)] == [True]
    assert told(findings, Severity.ERROR) == []


def test_a_group_on_the_cpu_may_be_hardened() -> None:
    """Where no accelerator is used, none is hidden."""
    text = '[job]\nhardening = "strict"\n[[node]]\ndevice = "cpu"'

    assert told(check(loaded(text)), Severity.WARNING) == []


NOTICES = {
    "the wire of a node of one's own": (
        "[[node]]\nmanaged = false",
        "job.wire: unwritten; it is native, so nodes that are not managed need our runtime and",
    ),
    "a masked subnet": (
        '[network]\ncidr = "10.0.5.7/24"\n[[node]]',
        "t:2:1: network.cidr: 10.0.5.7/24 is taken as 10.0.5.0/24",
    ),
    "a masked exclusion": (
        '[discover]\nexclude = ["a", "10.0.5.7/24"]\n[[node]]',
        "t:2:17: discover.exclude[1]: 10.0.5.7/24 is taken as 10.0.5.0/24",
    ),
    "placement without layers": (
        "[placement]\n[[node]]",
        "t:1:2: placement: without n_layers, no LAYERS is rendered",
    ),
}


@pytest.mark.parametrize(("text", "message"), NOTICES.values(), ids=NOTICES.keys())
def test_what_is_decided_unasked_is_noticed(text: str, message: str) -> None:
    """Nothing is chosen in silence."""
    assert any(message in notice for notice in told(check(loaded(text)), Severity.NOTICE))


def test_a_name_that_had_to_be_changed_is_noticed() -> None:
    """A file's name that is no slug yields one, and both are shown."""
    findings = check(loaded("[[node]]", "/lab/My Job.toml"))

    assert "t: job.name: unwritten; 'My Job' becomes 'my-job'" in told(findings, Severity.NOTICE)


@pytest.mark.parametrize("path", ["/lab/store.toml", "/lab/--.toml", "/store/inventory.toml"])
def test_a_path_that_yields_no_name_is_an_error(path: str) -> None:
    """The way out is to write one."""
    (error,) = told(check(loaded("[[node]]", path)), Severity.ERROR)

    assert error.startswith("t: job.name: ")
    assert told(check(loaded('[job]\nname = "a"\n[[node]]', path)), Severity.ERROR) == []


def test_two_thousand_nodes_are_checked_in_a_moment() -> None:
    """Checks between nodes do not compare each with each (ansible #17152)."""
    nodes = "\n".join(f'[[node]]\naddr = "10.0.{n // 250}.{n % 250}:1"' for n in range(2000))
    whole = loaded(nodes)
    started = time.process_time()

    assert told(check(whole), Severity.ERROR) == []
    assert time.process_time() - started < 2


NOT_BUILT = {
    "TLS": ('[job]\nsecurity = "tls"\n[[node]]', "t:2:1: job.security: not supported yet"),
    "provision": ('[runtime]\nprovision = "auto"\n[[node]]', "t:2:1: runtime.provision: not supp"),
}


@pytest.mark.parametrize(("text", "message"), NOT_BUILT.values(), ids=NOT_BUILT.keys())
def test_a_key_that_is_not_built_yet_is_refused_where_it_is_written(
    text: str, message: str
) -> None:
    """It is named with its place, never ignored; and it is no error of the file's."""
    (finding,) = unsupported(loaded(text))

    assert str(finding).startswith(message)
    assert errors_in(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "[[node]]",
        '[[node]]\naddr = "10.0.0.5"',
        '[job]\nwire = "native"\nsecurity = "psk"\n[[node]]\naddr = "10.0.0.5"',
        '[job]\nwire = "rlx"\nsecurity = "none"\n[[node]]\naddr = "10.0.0.5"',
        '[job]\nlaunch = "auto"\n[[node]]\nrole = "active"\nmanaged = true',
        '[job]\nuser = "ml"\nlaunch = "systemd"\n[ssh]\nforks = 2\n[[node]]\nssh = "a"',
        "[job]\nmin_nodes = 1\n[[node]]",
        '[job]\nlaunch = "systemd-user"\n[[node]]\nmanaged = false',
        '[discover]\nport = 9100\nmdns = true\nssh_hosts = ["a"]\nsubnet = "10.0.5.0/24"',
        '[job]\ntopology = "star"\n[[node]]\naddr = "127.0.0.1"\n[[node]]\naddr = "10.0.0.5"',
    ],
)
def test_what_is_built_is_not_refused(text: str) -> None:
    """A default that is written out is no demand."""
    assert unsupported(loaded(text)) == ()


def test_keys_for_upstream_alone_are_listed() -> None:
    """They are accepted, and whoever asks is told that they do nothing."""
    text = 'model = "m"\nseq = 8\n[placement.objective]\ncontext = 9\n[[node]]\nlayers = "0:1"'
    findings = without_effect(loaded(text))

    assert [finding.key for finding in findings] == [
        "model",
        "seq",
        "placement.objective.context",
        "node[0].layers",
    ]
    assert {finding.severity for finding in findings} == {Severity.NOTICE}
