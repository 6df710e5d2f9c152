"""What inventory and survey together do not allow is refused, and what is doubtful warned of."""

from dataclasses import replace

import pytest

from rlxdeploy.errors import CompileError, Severity
from rlxdeploy.model.survey import PREFLIGHT, Device, HostFacts, PortHolder
from tests.resolve.lab import CONTROLLER, GIB, HOSTS, machine, settle, three


def errors(caught: pytest.ExceptionInfo[CompileError]) -> str:
    return "\n".join(map(str, caught.value.findings))


HOLDER = PortHolder("0.0.0.0", 29500, 4711, "python old.py", "old.service")  # noqa: S104 - seen

WRONG = {
    "loopback in a plan of several hosts": (
        HOSTS.replace('ssh = "a"', 'ssh = "a"\naddr = "127.0.0.1:29500"'),
        three(),
        "inventory.toml:6:1: node[0].addr: no other machine can dial 127.0.0.1; write 10.0.0.1",
    ),
    "two ranks on one address and port": (
        HOSTS.replace('ssh = "a"', 'ssh = "a"\naddr = "10.0.0.2:29500"'),
        three(),
        "rank 1 and rank 0 (at inventory.toml:6:1) are both 10.0.0.2:29500",
    ),
    "an unprotected wire that leaves loopback unasked": (
        HOSTS.replace('security = "none"\n', ""),
        three(),
        "the rlx wire is unprotected, and 10.0.0.1 is not loopback",
    ),
    "MASTER_PORT among PEERS": (
        HOSTS + "[network]\nmaster_port = 29500\ndata_port = 29500\n",
        three(),
        "MASTER_PORT 29500 is also the port of rank 0",
    ),
    "a port beyond the last": (
        '[[node]]\naddr = "127.0.0.1:65535"\nslots = 2\ndevice = "cpu"\n',
        (machine(),),
        "rank 1 would get port 65536, which does not exist",
    ),
    "a stranger on the port": (
        "[[node]]\n",
        (replace(machine(), holders=(HOLDER,)),),
        "127.0.0.1 port 29500 on local is held by pid 4711 (python old.py) of unit old.service",
    ),
    "another job of ours on the port": (
        "[[node]]\n",
        (replace(machine(), holders=(replace(HOLDER, job="sweep", inventory="/lab/s.toml"),)),),
        "of unit old.service for the job sweep; stop it with `rlxdeploy stop /lab/s.toml`, or",
    ),
    "somebody else's address without ssh": (
        '[job]\nsecurity = "none"\n[[node]]\naddr = "10.9.9.9"\n',
        (machine(),),
        "10.9.9.9 is no address of the controller, and the node has no ssh; add ssh = …",
    ),
    "no numpy for the built-in node": (
        "[[node]]\n",
        (machine(numpy=""),),
        "/opt/rlxdeploy/bin/python on local (Python 3.11.2) has no numpy",
    ),
    "a Python that is too old": (
        HOSTS,
        three(python_version="3.8.10"),
        "python3 on a is Python 3.8.10; the runtime needs 3.9",
    ),
    "a program that is not there": (
        '[job]\ncommand = ["train"]\n[[node]]\n',
        (machine(programs={"train": "", CONTROLLER.interpreter: "/p"}),),
        "'train' is not on local; searched /usr/local/bin:/usr/bin",
    ),
    "a launch that does not work there": (
        '[job]\nlaunch = "systemd"\n[[node]]\n',
        (machine(launches=("process",)),),
        "systemd does not start a rank on local: there work process",
    ),
    "no launch at all": (
        "[[node]]\n",
        (machine(launches=()),),
        "auto does not start a rank on local: it has none of systemd 245 with root",
    ),
    "another user without the system's manager": (
        '[job]\nuser = "train"\nlaunch = "process"\n[[node]]\n',
        (machine(job_groups=()),),
        "on local, process starts ranks as ml only",
    ),
    "another user where auto finds nothing that starts as them": (
        '[job]\nuser = "train"\n[[node]]\n',
        (machine(job_groups=(), launches=("process",)),),
        "inventory.toml:2:1: job.user: on local, process starts ranks as ml only",
    ),
    "a user that does not exist": (
        '[job]\nuser = "train"\n[[node]]\n',
        (machine(),),
        "local has no account 'train'",
    ),
    "a name without an address": (
        '[[node]]\naddr = "nowhere:29500"\n',
        (machine(),),
        "the controller has no address for the name 'nowhere'",
    ),
}


@pytest.mark.parametrize(("text", "machines", "message"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_become_a_group_is_refused(
    text: str, machines: tuple[HostFacts, ...], message: str
) -> None:
    """Each problem is an error at the key it speaks of, with what to do."""
    with pytest.raises(CompileError) as caught:
        settle(text, *machines)

    assert message in errors(caught)


def test_all_errors_come_together() -> None:
    """A missing program, a taken port and a wrong address are reported at once."""
    text = '[job]\ncommand = ["train"]\n[[node]]\n[[node]]\naddr = "nowhere"\n'
    facts = replace(machine(programs={"train": ""}), holders=(HOLDER,))

    with pytest.raises(CompileError) as caught:
        settle(text, facts)

    assert len(caught.value.findings) == 3


def test_our_own_rank_on_the_port_is_no_stranger() -> None:
    """A second apply finds the group's ports held by the group itself, or by a preflight."""
    for own in (replace(HOLDER, rank=0), replace(HOLDER, command=f"python3 -I - {PREFLIGHT} t")):
        facts = replace(machine(), holders=(own,))

        assert settle("[[node]]\n", facts).world == 1


STRICT = '[job]\nhardening = "strict"\n[[node]]\n'

WARNED = {
    "a card that strict hardening hides": (
        STRICT,
        machine("local", "", Device("cuda", "Card", GIB, ident="0")),
        'job.hardening: hardening strict hides cuda from rank 0; write hardening = "gpu"',
    ),
    "hardening that a process cannot have": (
        STRICT,
        machine(launches=("process",)),
        "job.hardening: only the system's manager can apply all of it (not so on local)",
    ),
    "an account outside the GPU's groups": (
        "[[node]]\n",
        machine("local", "", Device("rocm", "Card", GIB, ident="0"), groups=("ml",)),
        "ml on local is in neither video nor render; rocm may be closed to it",
    ),
    "a question without an answer": (
        "[[node]]\n",
        replace(machine(), unanswered=("hardware",)),
        "local did not say in time: hardware",
    ),
    "an address behind NAT": (
        HOSTS.replace('ssh = "a"', 'ssh = "a"\naddr = "203.0.113.7:29500"'),
        three(),
        "no interface of a has 203.0.113.7, so rank 0 cannot listen on it",
    ),
}


@pytest.mark.parametrize(("text", "facts", "message"), WARNED.values(), ids=WARNED.keys())
def test_what_will_probably_not_do_is_warned_of(
    text: str, facts: HostFacts | tuple[HostFacts, ...], message: str
) -> None:
    """The group settles, and a warning says what may go wrong."""
    group = settle(text, *(facts if isinstance(facts, tuple) else (facts,)))

    warnings = [str(one) for one in group.notices if one.severity is Severity.WARNING]
    assert any(message in one for one in warnings), warnings


def test_a_systemd_that_is_too_old_is_named_where_process_takes_its_place() -> None:
    """Nobody wrote process: the plan says why the ranks will not survive a reboot."""
    old = machine(systemd="241", launches=("process",))
    young = machine(launches=("process",))
    said = "systemd 241 on local is older than 245; upgrade it; until then process launch is taken"

    assert any(said in str(one) for one in settle("[[node]]\n", old).notices)
    for text, facts in (('[job]\nlaunch = "process"\n[[node]]\n', old), ("[[node]]\n", young)):
        assert not any("older" in str(one) for one in settle(text, facts).notices)
