"""The answers about the system, and what follows from them."""

import pytest

from rlxdeploy.facts import platform
from rlxdeploy.facts.question import Answer, Answers, Unanswered
from rlxdeploy.model.survey import Platform
from rlxdeploy.model.targets import Enquiry

SYSTEM = """\
clock=1700000000
os=Linux
arch=x86_64
hostname=gpu-a
machine_id=0123456789abcdef0123456789abcdef
boot_id=11111111-2222-3333-4444-555555555555
init=systemd
systemd={systemd}
libc=glibc 2.36
host_key=AAAAC3NzaC1lZDI1NTE5AAAAIPXv8aiFqXVxUtNDn0DSDZh3fV1mFKlKg0yUjCzwQuyM
"""
USER = """\
id=uid=1000(ann) gid=1000(ann) groups=1000(ann),44(video),993(domain users),77
uid={uid}
home=/home/ann
data_home=/home/ann/.local/share
runtime_dir=/run/user/1000
"""
PYTHON = "python=/usr/bin/python3\npython_version=3.11.2\nnumpy=1.24.2\n"
ENQUIRY = Enquiry("demo", programs=("train", "/opt/a b/x", "none"), user="ml")


def read(systemd: str = "252", uid: int = 1000, **answers: str) -> Platform:
    given = {
        "system": SYSTEM.format(systemd=systemd),
        "user": USER.format(uid=uid),
        "python": PYTHON,
        **{name.replace("_", " "): text for name, text in answers.items()},
    }
    return platform.parse(ENQUIRY, Answers({name: Answer(text) for name, text in given.items()}))


def test_a_system_is_read_whole() -> None:
    """Identity, versions and folders are what the host said; the key is shown as OpenSSH does."""
    seen = read()

    assert (seen.os, seen.arch, seen.hostname, seen.init) == ("linux", "x86_64", "gpu-a", "systemd")
    assert (seen.systemd, seen.libc, seen.clock) == ("252", "glibc 2.36", 1_700_000_000.0)
    assert (seen.python, seen.python_version, seen.numpy) == (
        "/usr/bin/python3",
        "3.11.2",
        "1.24.2",
    )
    assert (seen.user, seen.uid) == ("ann", 1000)
    assert seen.groups == ("ann", "video", "domain users", "77")
    assert seen.host_key == "SHA256:hHJvdx+1xwOj+JHraOsmq9D2xA84FJ/TtqwWyuhn05g"


@pytest.mark.parametrize(
    ("systemd", "uid", "answers", "launches"),
    [
        ("252", 0, {}, ("systemd", "process")),
        ("252", 1000, {}, ("process",)),
        ("252", 1000, {"sudo": "yes\n"}, ("systemd", "process")),
        ("252", 1000, {"user_units": "lingers|\nmanager|there\n"}, ("systemd-user", "process")),
        ("252", 1000, {"user_units": "manager|there\n"}, ("process",)),
        ("252", 1000, {"user_units": "lingers|\n"}, ("process",)),
        ("244", 0, {"user_units": "lingers|\nmanager|there\n"}, ("process",)),
        ("", 0, {}, ("process",)),
        ("252", 0, {"python": ""}, ("systemd",)),
        ("", 1000, {"python": ""}, ()),
    ],
    ids=[
        "root",
        "user",
        "sudo",
        "manager",
        "in-sessions",
        "silent",
        "old",
        "none",
        "no-python",
        "nothing",
    ],
)
def test_the_launches_that_work_are_told_best_first(
    systemd: str, uid: int, answers: dict[str, str], launches: tuple[str, ...]
) -> None:
    """The manager needs 245 and privilege, a user's own has to linger, process needs a python."""
    assert read(systemd, uid, **answers).launches == launches


def test_programs_are_told_with_the_places_searched() -> None:
    """A program is an absolute path or empty; every place searched is named once."""
    seen = read(
        programs="searched=/usr/bin:/bin:/usr/bin:rel:/home/ann/.local/bin\n"
        "train=/home/ann/.local/bin/train\n/opt/a b/x=/opt/a b/x\nnone=\n"
    )

    assert seen.programs == {
        "train": "/home/ann/.local/bin/train",
        "/opt/a b/x": "/opt/a b/x",
        "none": "",
    }
    assert seen.searched == ("/usr/bin", "/bin", "/home/ann/.local/bin")


def test_a_job_user_is_told_from_none() -> None:
    """A user without groups of interest is there; one that the host does not know is None."""
    assert read(job_user="ml video\nok\n").job_groups == ("ml", "video")
    assert read(job_user="").job_groups is None


def test_a_host_that_does_not_say_who_it_is_fails() -> None:
    """Without identity nothing can be planned, so its question is named."""
    with pytest.raises(Unanswered, match="system: the host did not answer in time"):
        platform.parse(ENQUIRY, Answers({}, unanswered=("system",)))
