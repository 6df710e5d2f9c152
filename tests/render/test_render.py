"""Every host's files follow from the Resolution: readable, and the same bytes each time."""

import hashlib
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlxdeploy.errors import CompileError
from rlxdeploy.model.files import RemoteFile
from rlxdeploy.model.keyed import keyed
from rlxdeploy.model.survey import Device, HostFacts
from rlxdeploy.render.templates import RANK_ENV
from rlxdeploy.runtime.envfile import parse_env
from rlxdeploy.runtime.settings import Settings
from rlxdeploy.runtime.supervision.launch import read_launch
from tests.render.kit import ARCHIVE, GOLDEN, contents, rendered
from tests.resolve.lab import GIB, machine, three

DEMO = '[job]\nname = "demo"\nlaunch = "process"\n[[node]]\ndevice = "cpu"\nslots = 2\n'
LAB = (
    '[job]\nname = "lab"\nwire = "rlx"\nsecurity = "none"\nuser = "ml"\n'
    'command = ["python3", "-c", "print(\'50%h $HOME\')"]\n'
    '[job.env]\nNOTE = "a\\\\b\\"c $HOME 50%h \'x\' #y\\ntwo"\n'
    '[[node]]\nssh = "a"\nslots = 2\nckpt_dir = "/models/demo"\nkv_cache = "device"\n'
    '[[node]]\nssh = "b"\ndevice = "cpu"\nbind = "0.0.0.0"\nmax_ram_gb = 40\n'
)


def lab() -> tuple[HostFacts, ...]:
    cards = [Device("cuda", "Card", 24 * GIB, ident=str(index)) for index in range(2)]
    _a, b, _ = three(job_groups=("ml", "video"))
    return machine("a", "10.0.0.1/24", *cards, job_groups=("ml", "video")), b


SHOWN = {
    "demo-env": (DEMO, (), "local", "env/1.env"),
    "demo-process": (DEMO, (), "local", "process/1.json"),
    "lab-env-cuda": (LAB, lab(), "a", "env/1.env"),
    "lab-env-cpu": (LAB, lab(), "b", "env/2.env"),
    "lab-unit": (LAB, lab(), "a", "/etc/systemd/system/rlx-lab@.service"),
}


@pytest.mark.parametrize(("text", "machines", "host", "path"), SHOWN.values(), ids=SHOWN.keys())
def test_the_files_read_as_the_examples_do(
    request: pytest.FixtureRequest,
    text: str,
    machines: tuple[HostFacts, ...],
    host: str,
    path: str,
) -> None:
    """What a small inventory renders is kept in tests/render/golden, to be read by people."""
    golden = GOLDEN / f"{request.node.callspec.id}.txt"

    assert contents(rendered(text, *machines), host)[path] == golden.read_text(encoding="utf-8")


def test_the_same_arguments_give_the_same_bytes_and_release() -> None:
    """Nothing of the time, the place or the process goes into the files."""
    assert rendered(LAB, *lab()) == rendered(LAB, *lab())


def test_a_value_reaches_the_process_as_written() -> None:
    """Quotes, dollars, percent signs, hashes and line ends come through the file unchanged."""
    env = parse_env(contents(rendered(LAB, *lab()), "a")["env/0.env"])

    assert env["NOTE"] == "a\\b\"c $HOME 50%h 'x' #y\ntwo"


def test_a_torchrun_style_script_finds_its_variables() -> None:
    """Ranks count per group and per machine, and the devices are in slot order."""
    files = rendered(LAB, *lab())
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR")
    seen = [
        [parse_env(contents(files, host)[f"env/{rank}.env"])[name] for name in names]
        for rank, host in enumerate("aab")
    ]

    assert seen == [
        ["0", "3", "0", "2", "0", "10.0.0.1"],
        ["1", "3", "1", "2", "0", "10.0.0.1"],
        ["2", "3", "0", "1", "1", "10.0.0.1"],
    ]


@pytest.mark.parametrize(("text", "machines"), [(DEMO, ()), (LAB, lab())], ids=["demo", "lab"])
def test_the_runtime_reads_what_is_rendered(text: str, machines: tuple[HostFacts, ...]) -> None:
    """Each environment is one that the runtime takes, with the values of the group."""
    files = rendered(text, *machines)
    envs = [
        parse_env(one.content.decode())
        for host in files.hosts.values()
        for one in host.released
        if one.path.startswith("env/")
    ]

    assert [Settings.from_env(env).rank for env in envs] == list(range(len(envs)))
    assert {Settings.from_env(env).plan for env in envs} == {files.plan}


def plans(*changes: str) -> str:
    text = DEMO
    for change in changes:
        before, after = change.split(" -> ")
        text = text.replace(before, after)
    return rendered(text).plan


def test_rlx_plan_hashes_the_group_and_no_ranks_own_environment() -> None:
    """Another generation, world, address or topology is another plan, other variables are not."""
    first = plans()

    assert rendered(DEMO, generation=2).plan != first
    assert plans("slots = 2 -> slots = 3") != first
    assert plans("slots = 2 -> slots = 2\naddr = '127.0.0.2'") != first
    assert plans("[job] -> [job]\ntopology = 'star'") != first
    assert plans("slots = 2 -> slots = 2\nenv = {A = '1'}") == first


def test_the_runtime_is_on_the_path_from_the_store() -> None:
    """PYTHONPATH begins with the archive, which lies under the digest of its bytes."""
    files = rendered(DEMO)
    digest = hashlib.sha256(ARCHIVE).hexdigest()
    (stored,) = files.hosts["local"].stored

    assert stored.path == f"/home/ml/.local/share/rlx/store/{digest}"
    assert parse_env(contents(files)["env/0.env"])["PYTHONPATH"] == stored.path


def test_environment_and_process_files_are_for_their_owner_alone() -> None:
    """Whatever stands in them, nobody else on the host reads it."""
    assert {one.mode for one in rendered(DEMO).hosts["local"].released} == {0o600}


WITH_TOKEN = DEMO.replace("[[node]]", '[[node]]\nenv = { TOKEN = { from = "env:TOKEN" } }')


def env_of(value: str, template: str = "") -> RemoteFile:
    overrides = {RANK_ENV: template} if template else {}
    files = rendered(WITH_TOKEN, secrets={"env:TOKEN": value}, overrides=overrides)
    return files.hosts["local"].released[0]


def test_a_secret_marks_its_file_and_stands_in_it() -> None:
    """The host gets the value; people, and what is kept for diffs, get a keyed digest of it."""
    value = "never shown"
    env, other = env_of(value), env_of("another value")
    shown = parse_env((env.public or b"").decode())

    assert env.secret
    assert parse_env(env.content.decode())["TOKEN"] == value
    assert shown == {**parse_env(env.content.decode()), "TOKEN": shown["TOKEN"]}
    assert re.fullmatch(r"secret:[0-9a-f]{12}", shown["TOKEN"])
    assert env.public == env_of(value).public != other.public
    assert value not in repr(env)


def test_nobody_can_try_secrets_against_the_digest_of_their_file() -> None:
    """It is one under the controller's key, and so is every environment file's of the job."""
    env = env_of("1234")

    assert env.digest == keyed(hashlib.sha256(env.content).hexdigest(), b"k" * 32)
    assert env.digest != keyed(hashlib.sha256(env.content).hexdigest(), b"o" * 32)


def test_secrets_that_nobody_has_fetched_are_left_out() -> None:
    """What is rendered to be looked at says where they would be."""
    (env, *_) = rendered(WITH_TOKEN).hosts["local"].released

    assert parse_env(env.content.decode())["TOKEN"] == "(secret)"  # noqa: S105 - none


LOUD_TEMPLATES = {
    "an undefined name": "{{ {}[sections[-1].variables.TOKEN] }}",
    "a value of no use": "{{ sections[-1].variables.TOKEN.index('#') }}",
    "only with the secret": "{% if 'never' in sections[-1].variables.TOKEN %}"
    "{{ {}[sections[-1].variables.TOKEN] }}{% endif %}",
}


@pytest.mark.parametrize("template", LOUD_TEMPLATES.values(), ids=LOUD_TEMPLATES.keys())
def test_an_error_in_a_template_quotes_no_secret(template: str) -> None:
    """What goes wrong is said of what stands for the secret, or of none."""
    with pytest.raises(CompileError, match=r"rank\.env\.j2") as caught:
        env_of("never shown", template)

    assert "never shown" not in str(caught.value)
    assert caught.value.__cause__ is None or "never shown" not in str(caught.value.__cause__)


def test_the_supervisor_is_told_the_units_numbers() -> None:
    """Restart, timing and watchdog are those of a unit, and no release is in the file."""
    told = json.loads(contents(rendered(DEMO))["process/0.json"])

    assert told["format"] == 1
    assert (told["restart"], told["ready"], told["watchdog_s"]) == ("on-failure", "notify", 60.0)
    assert (told["restart_s"], told["restart_prevent"]) == (2, [64, 65, 78])
    assert "release" not in told


def test_the_supervisor_reads_its_file(tmp_path: Path) -> None:
    """What is rendered is what the supervisor takes, word for word."""
    path = tmp_path / "1.json"
    path.write_text(contents(rendered(DEMO))["process/1.json"], encoding="utf-8")

    launch = read_launch(path)

    assert (launch.rank, launch.argv[1:]) == (1, ("-m", "rlxdeploy.runtime"))


def file_of(text: str, dest: str) -> RemoteFile:
    found = rendered(text).hosts["local"]
    return next(one for one in (*found.released, *found.installed) if one.path.endswith(dest))


def test_a_job_file_goes_into_the_release_or_the_folder_of_the_person() -> None:
    """Without a workdir it is part of the release, and it is filled in where that is asked for."""
    files = '[[job.files]]\nsource = "run.py"\ndest = "bin/run.py"\nmode = "0750"\n'
    released = file_of(DEMO.replace("[[node]]", files + "template = true\n[[node]]"), "run.py")
    installed = file_of(
        DEMO.replace("[[node]]", files + "[[node]]").replace("[job]", '[job]\nworkdir = "/srv/x"'),
        "run.py",
    )

    assert (released.path, released.mode, released.content) == (
        "bin/run.py",
        0o750,
        b"run [0, 1]\n",
    )
    assert (installed.path, installed.content) == ("/srv/x/bin/run.py", b"run {{ ranks }}\n")


def test_a_template_of_the_persons_takes_the_place_of_ours() -> None:
    """It is found by its name, and the plan calls it theirs."""
    files = rendered(DEMO, overrides={"rank.env.j2": "A={{ rank | env }}\n"})

    env = files.hosts["local"].released[0]
    assert (env.content, env.source) == (b'A="0"\n', "your rank.env.j2")


REFUSED = {
    "a name that no template is given": (
        DEMO,
        {"overrides": {"rank.env.j2": "# one\nA={{ rnak }}\n"}},
        "rank.env.j2:2:1: 'rnak' is undefined",
    ),
    "a template that does not parse": (
        DEMO,
        {"overrides": {"rank.env.j2": "{% if %}"}},
        "rank.env.j2:1:1: Expected an expression",
    ),
    "an entry that is too long": (
        DEMO.replace("[[node]]", f'[job.env]\nLONG = "{"x" * 131_072}"\n[[node]]'),
        {},
        "inventory.toml:5:1: LONG: rank 0: 131077 bytes are more than Linux hands to a process",
    ),
    "a file in our folder": (
        DEMO.replace("[[node]]", '[[job.files]]\nsource = "run.py"\ndest = "env/x"\n[[node]]'),
        {},
        "inventory.toml:6:1: job.files[0].dest: env/x is taken by rlxdeploy in a release",
    ),
}


@pytest.mark.parametrize(("text", "more", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_rendered_is_refused_at_its_place(
    text: str, more: dict[str, Any], message: str
) -> None:
    """The error points at the line of the inventory or of the template."""
    with pytest.raises(CompileError) as caught:
        rendered(text, **more)

    assert message in str(caught.value)


def test_peers_too_long_for_a_process_advise_a_star() -> None:
    """A mesh of thousands does not fit into one variable; the error says what does."""
    text = (
        DEMO.replace("slots = 2", "slots = 1024") + '[[node]]\ndevice = "cpu"\nslots = 1024\n' * 7
    )

    with pytest.raises(CompileError, match='topology = "star"'):
        rendered(text)


def test_a_rank_with_an_interpreter_of_its_own_has_a_drop_in() -> None:
    """The unit says what most ranks run, the drop-in what one runs instead."""
    text = LAB.replace('ssh = "b"', 'ssh = "a"\npython = "/venv/bin/python"')
    text = text.replace('bind = "0.0.0.0"\n', "")

    files = contents(rendered(text, *lab()), "a")

    path = "/etc/systemd/system/rlx-lab@2.service.d/rank.conf"
    assert [one for one in files if one.endswith(".conf")] == [path]
    assert '\nExecStart=\nExecStart="/venv/bin/python" "-c"' in files[path]


def test_a_standbys_host_has_the_runtime_and_no_rank() -> None:
    """It holds what it needs to be promoted, nothing that starts, and what names the runtime."""
    text = LAB.replace('ssh = "b"', 'ssh = "b"\nrole = "standby"')

    files = rendered(text, *lab()).hosts["b"]

    (names,) = files.released
    assert (names.path, names.content) == ("env/stored", f"{files.stored[0].digest}\n".encode())
    assert (files.installed, len(files.stored), files.key) == ((), 1, None)


def test_hosts_without_an_ssh_name_do_not_change_the_release_of_others() -> None:
    """The release id covers the files of all hosts, so any change anywhere is a new one."""
    changed = LAB.replace("max_ram_gb = 40", "max_ram_gb = 41")
    a, b = lab()

    assert rendered(LAB, a, b).release != rendered(changed, a, b).release
    assert rendered(LAB, a, replace(b, unanswered=())).release == rendered(LAB, a, b).release


def test_two_thousand_hosts_compile_in_seconds() -> None:
    """A mesh of that size resolves and renders from its survey while a person waits."""
    count = 2000
    text = LAB[: LAB.index("[[node]]")] + "".join(
        f'[[node]]\nssh = "h{number}"\n' for number in range(count)
    )
    machines = [
        machine(f"h{number}", f"10.0.{number // 250}.{number % 250 + 1}/16", job_groups=("ml",))
        for number in range(count)
    ]

    started = time.process_time()
    files = rendered(text, *machines)

    assert len(files.hosts) == count
    assert time.process_time() - started < 15
