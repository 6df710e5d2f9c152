"""Who takes part in `bench.deploy`, and how each is told to do the same thing."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.deploy_group import UNIT_FILE, Group, Part
from rlxdeploy.app.validate import load_to_compile
from rlxdeploy.facts.host import questions
from rlxdeploy.facts.script import Patience, compose
from rlxdeploy.resolve.targets import targets

# Where bench/requirements-deploy.txt is installed.
PEERS = Path(os.environ.get("DEPLOY_PEERS", "/tmp/deploybench"))  # noqa: S108 - only read
PROGRAMS = ("ansible-playbook", "pyinfra")

_OURS = "import sys; from rlxdeploy.cli.main import main; sys.exit(main())"
_HERE = Path(__file__).parent

# The same files in the same places by one shell: what any tool has to have done at the least.
_DEEDS = """\
mkdir -p {folder} && umask 077 && cat >{env_file} <<'RLX-END'
{env}
RLX-END
umask 022; cat >{unit_file} <<'RLX-END'
{unit}
RLX-END
systemctl daemon-reload && systemctl enable {service} && systemctl start {service}
"""


@dataclass(frozen=True)
class Contender:
    """What is run for a first apply, and for one that has nothing to do.

    *prepared*: it finds the runtime and the key on the hosts, and need not bring them.
    """

    name: str
    first: tuple[str, ...]
    again: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    prepared: bool = True


def lacking() -> str:
    """Return how to install the peers where they are not; nothing where all are there."""
    missing = [name for name in PROGRAMS if not (PEERS / "bin" / name).exists()]
    if not missing:
        return ""
    return (
        f"{', '.join(missing)} not found in {PEERS} (DEPLOY_PEERS):\n"
        f"  python3 -m venv {PEERS}\n"
        f"  {PEERS}/bin/pip install -r bench/requirements-deploy.txt"
    )


def ours(group: Group) -> Contender:
    """Return rlxdeploy, as a person would run it."""
    apply = (sys.executable, "-c", _OURS, "apply", str(group.inventory), "--yes", "--no-diff")
    return Contender("rlxdeploy", apply, apply, {"PYTHONPATH": str(_HERE.parent)}, prepared=False)


def ansible(group: Group) -> Contender:
    """Return ansible-core with pipelining and a fork a host."""
    folder = _folder(group, "ansible")
    hosts = {part.host.name: _told(group, part) for part in group.parts}
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
    (folder / "ansible.cfg").write_text(
        f"[defaults]\nforks = {len(hosts)}\ninterpreter_python = /usr/bin/python3\n"
        "[connection]\npipelining = true\n",
        encoding="utf-8",
    )
    program = str(PEERS / "bin/ansible-playbook")
    argv = (program, "-i", str(folder / "hosts.yml"), str(_HERE / "deploy_ansible.yml"))
    return Contender("ansible-core", argv, argv, {"ANSIBLE_CONFIG": str(folder / "ansible.cfg")})


def pyinfra(group: Group) -> Contender:
    """Return pyinfra with all hosts in parallel."""
    folder = _folder(group, "pyinfra")
    hosts = [(part.host.name, _told(group, part)) for part in group.parts]
    (folder / "inventory.py").write_text(f"hosts = {hosts!r}\n", encoding="utf-8")
    files = (str(folder / "inventory.py"), str(_HERE / "deploy_pyinfra.py"))
    argv = (str(PEERS / "bin/pyinfra"), "--yes", "--parallel", str(len(hosts)), *files)
    return Contender("pyinfra", argv, argv)


def floor(group: Group) -> Contender:
    """Return one connection and one exec a host, which asks what a survey asks and acts."""
    folder = _folder(group, "floor")
    asked = _asked(group)
    first = {one.host.address: f"{asked}{_deeds(one)}" for one in group.parts}
    again = {one.host.address: asked for one in group.parts}
    key = str(group.fleet.home / ".ssh/id_ed25519")
    argvs = []
    for name, scripts in (("first", first), ("again", again)):
        path = folder / f"{name}.json"
        path.write_text(json.dumps(scripts), encoding="utf-8")
        argvs.append((sys.executable, str(_HERE / "deploy_floor.py"), key, str(path)))
    return Contender("one exec a host", argvs[0], argvs[1])


def _asked(group: Group) -> str:
    """Return a survey's questions of one host as a command; all are asked the same."""
    target = targets(load_to_compile(group.inventory), sys.executable).targets[0]
    script = compose(questions(target.enquiry), "0" * 32, Patience())
    return f"/bin/sh -c {shlex.quote(script)} </dev/null\n"


def _deeds(part: Part) -> str:
    return _DEEDS.format(
        folder=Path(part.env_file).parent,
        env_file=part.env_file,
        env=part.env,
        unit_file=UNIT_FILE,
        unit=part.unit,
        service=part.service,
    )


def _told(group: Group, part: Part) -> dict[str, str]:
    """Return what a host's tasks are told, with its files as sources on the controller."""
    sources = _folder(group, "sources")
    env, unit = sources / f"{part.rank}.env", sources / "unit"
    env.write_text(part.env, encoding="utf-8")
    unit.write_text(part.unit, encoding="utf-8")
    return {
        "env_folder": str(Path(part.env_file).parent),
        "env_file": part.env_file,
        "env_source": str(env),
        "unit_file": UNIT_FILE,
        "unit_source": str(unit),
        "service": part.service,
    }


def _folder(group: Group, name: str) -> Path:
    folder = group.desk.folder / name
    folder.mkdir(exist_ok=True)
    return folder
