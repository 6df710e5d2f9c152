"""The job's key among the files of every host, and in none of their texts."""

from dataclasses import replace

import pytest

from rlxdeploy.model.files import RemoteFile, RemoteFiles
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.render.inputs import Inputs
from rlxdeploy.render.key import needs_key, with_key
from rlxdeploy.render.render import render
from rlxdeploy.resolve.resolve import resolve
from rlxdeploy.runtime.envfile import parse_env
from rlxdeploy.runtime.settings import Settings
from rlxdeploy.runtime.wire.handshake import parse_key
from tests.render.kit import contents, inputs, rendered
from tests.resolve.lab import CONTROLLER, survey, three

KEY, OTHER = "5" * 64, "a" * 64
GROUP = (
    '[job]\nname = "lab"\nuser = "ml"\n[[node]]\nssh = "a"\naddr = "10.0.0.1"\ndevice = "cpu"\n'
    '[[node]]\nssh = "b"\nrole = "standby"\nstandby_for = "10.0.0.1"\n'
)
LOCAL = '[job]\nlaunch = "process"\n[[node]]\ndevice = "cpu"\n'


def group(key: str) -> RemoteFiles:
    return render(*_asked(GROUP, key), generation=1)


def _asked(text: str, key: str) -> tuple[Resolution, Inputs]:
    a, b, _ = three(job_groups=("ml",))
    given = replace(inputs(text), key=key)
    return resolve(given.loaded, survey(a, b), CONTROLLER), given


def key_of(files: RemoteFiles, host: str) -> RemoteFile:
    key = files.hosts[host].key
    assert key is not None
    return key


def test_every_host_of_the_job_has_the_key_a_standbys_too() -> None:
    """It lies beside the releases, for the job's user alone, and its ranks start with it."""
    files = group(KEY)
    a, b = key_of(files, "a"), key_of(files, "b")

    assert (a.path, a.mode, a.owner, a.secret) == ("/var/lib/rlx/lab/key", 0o600, "ml", True)
    assert (b.path, b.owner, b.content) == (a.path, "ml", a.content)
    assert (a.restarts, b.restarts) == ((0,), ())
    assert parse_key(a.content.decode()).hex() == KEY


def test_under_process_launch_the_key_is_the_login_users() -> None:
    """Whoever carries the plan out is who runs the ranks."""
    assert key_of(rendered(LOCAL), "local").owner == ""


def test_a_rank_is_told_where_the_key_lies_and_nothing_of_it() -> None:
    """Neither its files nor RLX_PLAN nor the release change with the key."""
    one, other = group(KEY), group(OTHER)
    settings = Settings.from_env(parse_env(contents(one, "a")["env/0.env"]))

    assert (settings.wire, settings.security) == ("native", "psk")
    assert settings.key_file == key_of(one, "a").path
    assert [replace(host, key=None) for host in one.hosts.values()] == [
        replace(host, key=None) for host in other.hosts.values()
    ]
    assert (one.plan, one.release) == (other.plan, other.release)
    assert KEY not in repr(one)


@pytest.mark.parametrize(
    "job", ['wire = "rlx"\n', 'security = "none"\n'], ids=["the rlx wire", "native without"]
)
def test_a_group_without_protection_has_no_key(job: str) -> None:
    """Nothing lies on a host that no rank reads."""
    files = rendered(LOCAL.replace("[job]\n", f"[job]\n{job}"))

    assert files.hosts["local"].key is None
    assert "RLX_KEY_FILE" not in contents(files)["env/0.env"]
    assert not needs_key(files)


def test_a_key_that_is_yet_to_be_made_is_put_in_later() -> None:
    """What stands in its place is no key, and the result is what a made key renders."""
    foreseen = group("")

    assert needs_key(foreseen)
    assert not needs_key(group(KEY))
    assert foreseen.release == group(KEY).release
    assert key_of(foreseen, "a").source == "a new key, made when this is applied"
    assert len(key_of(foreseen, "a").content) == len(key_of(group(KEY), "a").content)
    with pytest.raises(ValueError, match="64 hex digits"):
        parse_key(key_of(foreseen, "a").content.decode())
    assert key_of(with_key(foreseen, KEY), "b").content == key_of(group(KEY), "b").content
