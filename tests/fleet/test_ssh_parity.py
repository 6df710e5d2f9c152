"""Our connections against those of the real ssh, as real sshds log them."""

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rlxdeploy.edge.session import framed
from rlxdeploy.edge.ssh.hosts import SshHosts
from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.errors import HostError
from rlxdeploy.model.host import Host
from rlxdeploy.model.vocabulary import SshClient
from tests.edge.ssh.relay import relay
from tests.edge.ssh.sshd import (
    Login,
    Sshd,
    Visits,
    make_key,
    need_sshd,
    public_line,
    running_agent,
    running_sshd,
)
from tests.fleet.ssh_cases import CASES, TAIL, Case

OPTIONS_MATTER = (
    *("match sees the inventory's user", "the inventory's port", "the inventory's identity"),
    *("an alias that is a URI", "jump", "jump chain", "jump by address", "proxy command"),
    *("a chain overrides the last hop's own jump", "proxy command by ssh"),
    *("an unknown host key", "a jump host that lets nobody in"),
)


@dataclass(frozen=True)
class Lab:
    """Three sshds, five keys and an agent with the first four."""

    folder: Path
    visits: Visits
    names: Mapping[str, str]

    def filled(self, text: str) -> str:
        return text.format_map(self.names)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start what the cases connect to."""
    need_sshd()
    folder = tmp_path_factory.mktemp("parity")
    kinds = {"k1": "ed25519", "k2": "ecdsa", "k3": "ed25519", "k4": "rsa", "k5": "ed25519"}
    keys = [make_key(folder / name, kind) for name, kind in kinds.items()]
    visits = Visits()
    with ExitStack() as stack:
        target, gw, gw2 = (
            stack.enter_context(running_sshd(folder, name, [key], visits))
            for name, key in zip(("target", "gw", "gw2"), (keys[2], keys[0], keys[1]), strict=True)
        )
        names = {server.name: str(server.port) for server in (target, gw, gw2)}
        lay_out(folder, (target, gw, gw2), names)
        stack.enter_context(running_agent(folder, keys[:4]))
        yield Lab(folder, visits, {**names, "folder": str(folder), "relay": relay(folder)})


def lay_out(folder: Path, servers: tuple[Sshd, ...], ports: Mapping[str, str]) -> None:
    """Put the files in place that the cases name."""
    target = servers[0]
    known = "".join(server.known for server in servers)
    files = {
        "empty": "",
        "known": known,
        "hashed-known": known,
        "odd-known": f"@cert-authority *.example {public_line(folder / 'k1')}\nodd\n{known}",
        "changed-known": f"[127.0.0.1]:{target.port} {public_line(folder / 'k1')}\n",
        "alias-known": f"cluster {target.host_key}\n",
        "conf.d/a": f"Host target\n  Port {ports['target']}\n  IdentityFile {folder}/k3\n",
        "conf.d/in-host": f"Port {ports['target']}\nIdentityFile {folder}/k3\n",
    }
    for name in ("conf.d", "with blank", "public"):
        (folder / name).mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(folder / "hashed-known")], check=True)
    for copy in ("with blank/k3", "target-key"):
        (folder / copy).touch(0o600)
        (folder / copy).write_bytes((folder / "k3").read_bytes())
    (folder / "public/k3.pub").write_text(public_line(folder / "k3"))


def visits_of_ssh(lab: Lab, case: Case) -> list[Login]:
    arguments = [lab.filled(word) for word in case.arguments]
    strict = ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
    subprocess.run(
        [
            "ssh",
            "-F",
            str(lab.folder / "config"),
            *strict,
            *arguments,
            lab.filled(case.alias),
            "true",
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        start_new_session=True,
        check=False,
    )
    return lab.visits.take()


def visits_of_ours(lab: Lab, case: Case, client: SshClient) -> list[Login]:
    written = {key: lab.filled(value) for key, value in case.overrides.items()}
    overrides = Overrides(
        config=str(lab.folder / "config"),
        user=written.get("user", ""),
        port=int(written["port"]) if "port" in written else None,
        identity=written.get("identity", ""),
        client=client,
    )
    alias = lab.filled(case.alias)
    deadline = time.monotonic() + 30
    with SshHosts(overrides) as hosts:
        try:
            with hosts.open(Host(alias, alias), deadline) as session:
                session.send(framed("echo in"), deadline)
                session.read(deadline)
        except HostError:
            pass  # the servers' logs tell, and what they tell is compared
    return lab.visits.take()


@contextmanager
def configured(lab: Lab, case: Case) -> Iterator[None]:
    """Write the configuration to where both clients read it, and set their environment."""
    (lab.folder / "config").write_text(lab.filled(case.config + TAIL))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RLX_TEST_KEYS", str(lab.folder))
        environment.delenv("SSH_AUTH_SOCK", raising=False)
        if case.agent:
            environment.setenv("SSH_AUTH_SOCK", str(lab.folder / "agent"))
        yield


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_we_come_as_the_real_ssh_comes(lab: Lab, case: Case) -> None:
    """Users, ports, hops and the keys offered in their order are those of `ssh`."""
    with configured(lab, case):
        theirs = visits_of_ssh(lab, case)
        ours = visits_of_ours(lab, case, SshClient.FABRIC)

    assert theirs
    assert ours == theirs


@pytest.mark.parametrize("name", OPTIONS_MATTER)
def test_the_openssh_client_comes_so_too(lab: Lab, name: str) -> None:
    """Our options and masters change nobody's way where the real client makes it."""
    case = CASES[name]
    with configured(lab, case):
        theirs = visits_of_ssh(lab, case)
        ours = visits_of_ours(lab, case, SshClient.OPENSSH)

    assert theirs
    assert ours == theirs
