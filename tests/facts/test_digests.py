"""Our files on a host: digests, owners and links, and the mark of the last apply."""

import json

import pytest

from rlxdeploy.facts import digests
from rlxdeploy.facts.question import Answer, AnswerError, Answers, Unanswered
from rlxdeploy.model.stray import How, Stray
from rlxdeploy.model.survey import FileSeen, JobSeen

MARK = {
    "deployment": "d1",
    "job": "demo",
    "release": "r2",
    "generation": 4,
    "plan": "p",
    "launch": "systemd",
    "world": 2,
    "ranks": [0, 1],
    "controller": "desk",
    "owner": "ann",
    "inventory": "/lab/inventory.toml",
    "applied_at": 1.5,
}
A, B = "a" * 64, "b" * 64
TREE = f"""\
current|releases/r2
/var/lib/rlx/demo/releases/r1
/var/lib/rlx/demo/releases/r2
/var/lib/rlx/demo/releases/r3.tmp
mark|/var/lib/rlx/demo/deployment.json
deployment|{json.dumps(MARK)}
stat|81a4 root 12 /var/lib/rlx/demo/current//env/0.env
stat|8180 ml 64 /var/lib/rlx/demo/key
stat|a1ff root 9 /var/lib/rlx/demo/current/data
stat|81a4 root 9 /var/lib/rlx/store/{B}
stat|81a4 root 9 /var/lib/rlx/store/.lock
stat|0100644 root 5 /etc/systemd/system/rlx-demo@.service
sum|{A}  /var/lib/rlx/demo/current//env/0.env
sum|{B} */var/lib/rlx/demo/key
sum|\\{A}  /var/lib/rlx/demo/current/odd\\\\name
stat|81a4 root 1 /var/lib/rlx/demo/current/odd\\name
link|/var/lib/rlx/demo/current/data
target|/srv/data
"""


def read(system: str, user: str = "") -> JobSeen:
    return digests.parse(Answers({"system files": Answer(system), "user files": Answer(user)}))


def test_a_tree_is_read_whole() -> None:
    """Files come with digest, mode, owner, size and kind; unfinished releases do not count."""
    seen = read(TREE)

    assert seen.deployed is not None
    assert (seen.deployed.release, seen.deployed.ranks) == ("r2", (0, 1))
    assert (seen.current, seen.releases) == ("r2", ("r1", "r2"))
    assert seen.files == {
        "/var/lib/rlx/demo/current/env/0.env": FileSeen(A, 0o644, "root", 12),
        "/var/lib/rlx/demo/key": FileSeen(B, 0o600, "ml", 64),
        "/var/lib/rlx/demo/current/data": FileSeen("/srv/data", 0o777, "root", 9, "link"),
        f"/var/lib/rlx/store/{B}": FileSeen("", 0o644, "root", 9),
        "/etc/systemd/system/rlx-demo@.service": FileSeen("", 0o644, "root", 5),
        "/var/lib/rlx/demo/current/odd\\name": FileSeen(A, 0o644, "root", 1),
    }


def test_a_host_without_the_job_has_seen_nothing_of_it() -> None:
    """Empty answers are an empty job."""
    assert read("") == JobSeen()


def test_of_two_trees_the_later_apply_stands_and_all_files_show() -> None:
    """A change of launch leaves files behind; the mark with the higher generation is the job."""
    mark = json.dumps(MARK | {"generation": 5, "release": "r9", "launch": "process"})
    user = f"current|releases/r9\nmark|/home/x\ndeployment|{mark}\nstat|8180 ann 1 /home/ann/key\n"

    seen = read(TREE, user)

    assert (seen.current, seen.deployed and seen.deployed.launch) == ("r9", "process")
    assert {"/home/ann/key", "/var/lib/rlx/demo/key"} <= seen.files.keys()


@pytest.mark.parametrize(
    "mark",
    ["", "{", "[]", "{}", json.dumps(MARK | {"world": "two"})],
    ids=["empty", "cut", "list", "lacking", "wrong"],
)
def test_a_mark_that_cannot_be_read_is_never_taken_for_none(mark: str) -> None:
    """It might be somebody else's, so the host is refused, with the path and what to do."""
    text = f"mark|/var/lib/rlx/demo/deployment.json\ndeployment|{mark}\n"

    with pytest.raises(AnswerError, match=r"/var/lib/rlx/demo/deployment\.json") as caught:
        read(text)
    assert "--adopt" in caught.value.remedy


def test_a_host_that_does_not_say_what_lies_there_fails() -> None:
    """Nobody may plan over a tree that was not seen: it might be another's."""
    with pytest.raises(Unanswered, match="user files"):
        digests.parse(Answers({"system files": Answer("")}, unanswered=("user files",)))


UNIT = "/etc/systemd/system/rlx-demo@.service"
NOTED = {"/var/lib/rlx/demo/current/env/0.env": [A, 0o644, ""], UNIT: [A, 0o644, ""]}


def marked(**more: object) -> str:
    """Return the tree with a mark that has *more* in it."""
    return TREE.replace(json.dumps(MARK), json.dumps(MARK | more))


def test_a_tree_is_held_against_what_its_mark_notes() -> None:
    """A unit with another content is told; of what no mark notes nobody says anything."""
    assert read(marked(files=NOTED)).strays == (Stray(UNIT, How.CHANGED),)
    assert read(TREE).strays == ()
    assert read(marked(files="of a newer rlxdeploy")).strays == ()


def test_while_an_apply_is_under_way_nothing_is_astray() -> None:
    """What lies there then is neither the one release nor the other."""
    assert read(marked(files=NOTED) + "unconfirmed|r1\n").strays == ()


def test_a_current_that_points_elsewhere_is_all_that_is_told() -> None:
    """Every file differs then, and that is the one reason."""
    text = marked(files=NOTED).replace("current|releases/r2", "current|releases/r1")

    assert read(text).strays == (Stray("/var/lib/rlx/demo/current", How.SWITCHED),)


LOCK = "lock|pid=7\nlock|start=42\nlock|boot=b1\nlock|up=1\nlock|by=ann at desk\n"
STAT = "process|7 (sh) S " + "0 " * 18 + "{start} 0\n"


@pytest.mark.parametrize(
    ("behind", "by"),
    [
        ("boot|b1\n" + STAT.format(start=42), "ann at desk, pid 7"),
        ("boot|b1\n" + STAT.format(start=43), ""),
        ("boot|b2\n" + STAT.format(start=42), ""),
        ("boot|b1\n", ""),
        ("process|\n", "ann at desk, pid 7"),
    ],
    ids=["alive", "another process", "another boot", "gone", "no proc, alive"],
)
def test_a_lock_counts_while_its_holder_lives(behind: str, by: str) -> None:
    """The holder is known by number, start time and boot."""
    assert read(LOCK + behind).locked_by == by
