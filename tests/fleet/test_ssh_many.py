"""Many hosts at once, each with a key of its own, and many behind one sshd, as their logs tell."""

import os
import pwd
import re
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest

from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.session import framed
from rlxdeploy.edge.ssh.hosts import SshHosts
from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.edge.ssh.trust import next_unknown
from rlxdeploy.errors import Refused
from rlxdeploy.facts.ssh_keys import from_public_file
from rlxdeploy.model.host import Host
from rlxdeploy.model.vocabulary import SshClient
from tests.edge.ssh.conftest import everything
from tests.edge.ssh.sshd import (
    Login,
    Visits,
    make_key,
    need_sshd,
    running_agent,
    running_daemon,
    running_sshd,
)

CLIENTS = pytest.mark.parametrize("client", [SshClient.FABRIC, SshClient.OPENSSH])
ALLOWED_S = 40.0
# Without root an sshd lets nobody in but its own user.
USER = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture(autouse=True)
def without_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the agent of whoever runs the tests out, and ask for the sshd they need."""
    need_sshd()
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def ask_all(config: Path, names: list[str], client: SshClient) -> dict[str, bytes]:
    """Return what each host says, all asked together in one run."""
    with SshHosts(Overrides(config=str(config), client=client)) as hosts:

        def ask(name: str, deadline: float) -> bytes:
            with hosts.open(Host(name, name), deadline) as session:
                session.send(framed(f"echo {name}"), deadline)
                return everything(session, ALLOWED_S)

        pool = Pool(len(names), ALLOWED_S)
        return dict(pool.on_hosts(ask, {name: name for name in names}, "ask").required())


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Visits]]:
    """Serve eight hosts, h1 to h8, that let in k1 to k8, one each."""
    need_sshd()
    folder, visits = tmp_path_factory.mktemp("eight"), Visits()
    rules, known = [], []
    with ExitStack() as stack:
        for number in range(1, 9):
            key = make_key(folder / f"k{number}")
            host = stack.enter_context(running_sshd(folder, f"h{number}", [key], visits))
            rules.append(f"Host {host.name}\n  Port {host.port}\n  IdentityFile {key}\n")
            known.append(host.known)
        tail = f"HostName 127.0.0.1\n  User {USER}\n  UserKnownHostsFile {folder}/known\n"
        rules.append(f"Host *\n  IdentitiesOnly yes\n  {tail}")
        (folder / "config").write_text("".join(rules))
        (folder / "known").write_text("".join(known))
        yield folder, visits


@CLIENTS
@pytest.mark.parametrize("with_agent", [False, True], ids=["files", "an agent"])
def test_each_host_is_offered_its_own_key_only(
    eight: tuple[Path, Visits],
    monkeypatch: pytest.MonkeyPatch,
    client: SshClient,
    with_agent: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """No key of another host leaks into a connection, nor does what else an agent holds."""
    folder, visits = eight
    names = [f"h{number}" for number in range(1, 9)]
    keys = [folder / f"k{number}" for number in range(1, 9)]
    with running_agent(folder, keys) if with_agent else nullcontext() as agent:
        if agent:
            monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
        answers = ask_all(folder / "config", names, client)

    own = zip(names, keys, strict=True)
    expected = {name: Login(name, USER, (fingerprint(key),), is_in=True) for name, key in own}
    came = visits.take()
    assert answers == {name: f"{name}\n".encode() for name in names}
    assert len(came) == len(names)
    assert {login.server: login for login in came} == expected


def fingerprint(key: Path) -> str:
    public = from_public_file(key.with_suffix(".pub").read_bytes())
    assert public is not None
    return public.fingerprint


@CLIENTS
def test_a_refused_key_is_offered_once(tmp_path: Path, client: SshClient) -> None:
    """Sshd sees one connection with one attempt in it: more would come nearer to a ban."""
    visits = Visits()
    ours, theirs = make_key(tmp_path / "ours"), make_key(tmp_path / "theirs")
    with running_sshd(tmp_path, "target", [theirs], visits) as target:
        (tmp_path / "config").write_text(
            f"Host target\n  HostName 127.0.0.1\n  Port {target.port}\n  User {USER}\n"
            f"  IdentityFile {ours}\n  UserKnownHostsFile {tmp_path}/known\n"
        )
        (tmp_path / "known").write_text(target.known)
        with pytest.raises(ExceptionGroup) as failed:
            ask_all(tmp_path / "config", ["target"], client)
        logs = visits.texts()

    assert isinstance(failed.value.exceptions[0], Refused)
    assert [len(re.findall(f"Failed publickey for {USER}", log)) for log in logs] == [1]


MANY = 16  # more than sshd takes at once unless told otherwise: MaxStartups 10:30:100
# So many are begun at once at the most, and each of them is over when it says so.
DOOR = "MaxStartups 8:100:8\n"


WAYS = {
    "directly": "{door}\n",
    "directly, every second with OpenSSH": (
        "{door}\nHost n*1 n*3 n*5 n*7 n*9\n  RevokedHostKeys {folder}/none-revoked\n"
    ),
    "through it by a ProxyCommand": (
        "{inner}\n  ProxyCommand ssh -F {folder}/config -W [%h]:%p bastion\n"
    ),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_no_more_than_a_few_stand_at_one_door(tmp_path: Path, way: str) -> None:
    """However many hosts lie behind one sshd, few are yet to log in there at any time."""
    key, visits = make_key(tmp_path / "key"), Visits()
    names = [f"n{number}" for number in range(MANY)]
    with (
        running_daemon(tmp_path, [key], DOOR) as (door, log),
        running_sshd(tmp_path, "inner", [key], visits) as inner,
    ):
        port = way.format(door=door.port, inner=inner.port, folder=tmp_path)
        server = inner if "ProxyCommand" in way else door
        rules = "".join(f"Host {name}\n  HostKeyAlias {name}\n" for name in names)
        (tmp_path / "none-revoked").touch()
        (tmp_path / "config").write_text(
            f"{rules}Host bastion\n  Port {door.port}\n  HostKeyAlias bastion\n"
            f"Host n*\n  Port {port}Host *\n  HostName 127.0.0.1\n  User {USER}\n"
            f"  IdentityFile {key}\n  UserKnownHostsFile {tmp_path}/known\n"
        )
        (tmp_path / "known").write_text(
            f"bastion {door.host_key}\n" + "".join(f"{name} {server.host_key}\n" for name in names)
        )
        answers = ask_all(tmp_path / "config", names, SshClient.AUTO)

    assert answers == {name: f"{name}\n".encode() for name in names}
    said = log.read_text()
    assert said.count("Accepted publickey") == MANY
    assert "MaxStartups" not in said


def test_the_keys_of_many_are_fetched_from_one_door(tmp_path: Path) -> None:
    """Making hosts known takes its turn too, and comes again where sshd hangs up."""
    names = [f"n{number}" for number in range(MANY)]
    with running_daemon(tmp_path, [make_key(tmp_path / "key")], DOOR) as (
        door,
        _,
    ):
        (tmp_path / "config").write_text(
            "".join(f"Host {name}\n  HostKeyAlias {name}\n" for name in names)
            + f"Host *\n  HostName 127.0.0.1\n  Port {door.port}\n"
            f"  UserKnownHostsFile {tmp_path}/known\n"
        )
        with SshHosts(Overrides(config=str(tmp_path / "config"))) as hosts:

            def ask(name: str, deadline: float) -> str:
                new = next_unknown(hosts, Host(name, name), deadline)
                return new.key.line if new else ""

            pool = Pool(len(names), ALLOWED_S)
            keys = pool.on_hosts(ask, {name: name for name in names}, "ask").required()

    assert keys == dict.fromkeys(names, door.host_key)
