"""SSH configurations, and how the real ssh is asked the same as our inventory.

`{name}` stands for the port of a server, `{folder}` for where keys and files lie.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

# Every configuration ends so: what stands before wins.
TAIL = """
Host target gw gw2
  HostName 127.0.0.1
Match all
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile none
"""
TARGET = "Host target\n  Port {target}\n  IdentityFile {folder}/k3\n"
GATES = """
Host gw
  Port {gw}
  IdentityFile {folder}/k1
Host gw2
  Port {gw2}
  IdentityFile {folder}/k2
"""


@dataclass(frozen=True)
class Case:
    """A configuration, the alias that is asked for, and the `[ssh]` table beside it."""

    config: str
    alias: str = "target"
    arguments: tuple[str, ...] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    agent: bool = False


CASES = {
    "plain": Case(TARGET),
    "include": Case("Include {folder}/conf.d/*\n"),
    "include within a host": Case("Host target\n  Include {folder}/conf.d/in-host\n"),
    "first value wins": Case(TARGET + "Host *\n  Port 9\n  IdentityFile {folder}/k4\n"),
    "wildcard": Case("Host t?rg*\n  Port {target}\n  IdentityFile {folder}/k3\n"),
    "negated pattern": Case("Host * !target\n  Port 9\n" + TARGET),
    "match host": Case(
        "Host target\n  HostName 127.0.0.1\n"
        "Match host 127.0.0.1\n  Port {target}\n  IdentityFile {folder}/k3\n"
    ),
    "match originalhost": Case(
        "Match originalhost target\n  Port {target}\n  IdentityFile {folder}/k3\n"
    ),
    "match exec": Case(
        'Match exec "test %n = target"\n  Port {target}\n  IdentityFile {folder}/k3\n'
    ),
    "match exec that fails": Case('Match exec "test %n = x"\n  Port 9\n' + TARGET),
    "match final": Case(TARGET + "Match final all\n  IdentityFile {folder}/k4\n"),
    "match sees the inventory's user": Case(
        "Match user nobody\n  Port {target}\n  IdentityFile {folder}/k4\n",
        arguments=("-l", "nobody"),
        overrides={"user": "nobody"},
    ),
    "the inventory's port": Case(
        "Host target\n  IdentityFile {folder}/k3\n  Port 9\n",
        arguments=("-p", "{target}"),
        overrides={"port": "{target}"},
    ),
    "the inventory's identity": Case(
        "Host target\n  Port {target}\n  IdentityFile {folder}/k4\n",
        arguments=("-i", "{folder}/k3"),
        overrides={"identity": "{folder}/k3"},
    ),
    "user": Case(TARGET + "  User nobody\n"),
    "user in the alias": Case(TARGET + "  User other\n", alias="nobody@target"),
    "an alias that is a URI": Case(
        "Host target\n  IdentityFile {folder}/k3\n", alias="ssh://nobody@target:{target}"
    ),
    "no public keys": Case(TARGET + "  PubkeyAuthentication no\n"),
    "public keys not bound to a host": Case(TARGET + "  PubkeyAuthentication unbound\n"),
    "passwords preferred": Case(TARGET + "  PreferredAuthentications password\n"),
    "several identities in order": Case(
        "Host target\n  Port {target}\n  IdentityFile {folder}/k4\n  IdentityFile {folder}/k1\n"
        "Host *\n  IdentityFile {folder}/k3\n  IdentityFile {folder}/k2\n"
    ),
    "an identity that is not there": Case(
        "Host target\n  IdentityFile {folder}/none-such\n" + TARGET
    ),
    "tokens in an identity": Case("Host target\n  Port {target}\n  IdentityFile {folder}/%n-key\n"),
    "a variable in an identity": Case(
        "Host target\n  Port {target}\n  IdentityFile ${{RLX_TEST_KEYS}}/k3\n"
    ),
    "a blank in an identity": Case(
        'Host target\n  Port {target}\n  IdentityFile "{folder}/with blank/k3"\n'
    ),
    "only some algorithms": Case(
        "Host target\n  PubkeyAcceptedAlgorithms ssh-ed25519\n  IdentityFile {folder}/k2\n" + TARGET
    ),
    "rsa": Case("Host target\n  Port {target}\n  IdentityFile {folder}/k4\n"),
    "ecdsa before the right one": Case("Host target\n  IdentityFile {folder}/k2\n" + TARGET),
    "agent": Case("Host target\n  Port {target}\n", agent=True),
    "agent and a file of its": Case(TARGET, agent=True),
    "agent and a file it lacks": Case(
        "Host target\n  IdentityFile {folder}/k5\n" + TARGET, agent=True
    ),
    "agent, identities only": Case(TARGET + "  IdentitiesOnly yes\n", agent=True),
    "agent, a public file only": Case(
        "Host target\n  Port {target}\n  IdentityFile {folder}/public/k3.pub\n"
        "  IdentitiesOnly yes\n",
        agent=True,
    ),
    "agent switched off": Case(TARGET + "  IdentityAgent none\n", agent=True),
    "agent by its path": Case("Host target\n  Port {target}\n  IdentityAgent {folder}/agent\n"),
    "host key alias": Case(
        TARGET + "  HostKeyAlias cluster\n  UserKnownHostsFile {folder}/alias-known\n"
    ),
    "several known_hosts files": Case(
        TARGET + "  UserKnownHostsFile {folder}/empty {folder}/known\n"
    ),
    "a hashed known_hosts file": Case(TARGET + "  UserKnownHostsFile {folder}/hashed-known\n"),
    "a known_hosts file with an odd line": Case(
        TARGET + "  UserKnownHostsFile {folder}/odd-known\n"
    ),
    "an unknown host key": Case(TARGET + "  UserKnownHostsFile {folder}/empty\n"),
    "a changed host key": Case(TARGET + "  UserKnownHostsFile {folder}/changed-known\n"),
    "jump": Case(TARGET + "  ProxyJump gw\n" + GATES),
    "jump chain": Case(TARGET + "  ProxyJump gw,gw2\n" + GATES),
    "jump by address": Case(
        TARGET + "  ProxyJump nobody@127.0.0.1:{gw}\nHost 127.0.0.1\n  IdentityFile {folder}/k1\n"
    ),
    "jump none under a rule for all": Case(
        "Host gw\n  ProxyJump none\n" + TARGET + GATES + "Host *\n  ProxyJump gw\n", alias="gw"
    ),
    "jump under a rule for all": Case(
        "Host gw\n  ProxyJump none\n" + TARGET + GATES + "Host *\n  ProxyJump gw\n"
    ),
    "a jump host with its own jump": Case(
        TARGET + "  ProxyJump gw2\nHost gw2\n  ProxyJump gw\n" + GATES
    ),
    "a chain overrides the last hop's own jump": Case(
        TARGET + "  ProxyJump gw,gw2\nHost gw2\n  ProxyJump none-such\n" + GATES
    ),
    "a jump host that lets nobody in": Case(
        TARGET + "  ProxyJump gw\nHost gw\n  Port {gw}\n  IdentityFile {folder}/k4\n"
    ),
    "proxy command": Case(TARGET + "  ProxyCommand {relay} %h %p\n"),
    "proxy command that is a pipeline": Case(TARGET + "  ProxyCommand {relay} %h %p | cat\n"),
    "proxy command by ssh": Case(
        TARGET + "  ProxyCommand ssh -F {folder}/config -W [%h]:%p gw\n" + GATES
    ),
    "proxy command none": Case(TARGET + "  ProxyCommand none\nHost *\n  ProxyCommand false\n"),
    "address family": Case(
        "Host target\n  HostName localhost\n  AddressFamily inet\n  HostKeyAlias cluster\n"
        "  UserKnownHostsFile {folder}/alias-known\n" + TARGET
    ),
}
