"""The key of a job: made by the first apply, read by its ranks, seen by nobody."""

import stat
from pathlib import Path

from tests.cli.desk import EN_DASH, Desk


def own_key(desk: Desk) -> Path:
    return desk.lab / ".rlxdeploy" / "demo.key"


def hosts_key(desk: Desk) -> Path:
    return desk.data / "rlx" / "demo" / "key"


def test_an_inventory_that_says_nothing_has_a_group_with_a_key(desk: Desk) -> None:
    """The ranks speak the native wire; the key lies in two files, each for its owner alone."""
    desk.pair()
    desk.good("apply", "--yes")
    env = desk.good("explain", "0", "-i", "inventory.toml").out

    assert "RLX_WIRE" in env
    assert "native" in env
    assert "psk" in env
    assert own_key(desk).read_bytes() == hosts_key(desk).read_bytes()
    for path in (own_key(desk), hosts_key(desk)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    desk.good("destroy", "--yes")
    assert not own_key(desk).exists()
    assert not hosts_key(desk).exists()


def test_a_key_is_in_no_output_no_file_and_no_process(desk: Desk) -> None:
    """Whatever is printed, kept or started in the life of a job holds nothing of it."""
    desk.pair()
    said = [
        desk.good("plan"),
        desk.good("plan", "--out", "plan.json"),
        desk.good("plan", "--json"),
        desk.good("apply", "--yes", "plan.json"),
        desk.good("plan", "--json"),
        desk.good("show", "plan.json"),
        desk.good("explain", "1"),
        desk.good("explain", "local"),
        desk.good("render", "--out", "tree"),
        desk.good("resolve"),
        desk.good("status", "--json"),
        desk.good("logs"),
        desk.good("restart"),
    ]
    key = own_key(desk).read_text(encoding="ascii").strip()
    holders = {
        path
        for path in desk.folder.rglob("*")
        if path.is_file() and key.encode() in path.read_bytes()
    }
    processes = [Path(f"/proc/{pid}") for pid in desk.left()]

    assert len(key) == 64
    assert holders == {own_key(desk), hosts_key(desk)}
    assert [one for one in said if key in one.out + one.err] == []
    assert len(processes) == 4, "two supervisors, two ranks"
    for process in processes:
        assert key.encode() not in (process / "cmdline").read_bytes()
        environ = (process / "environ").read_bytes()
        assert key.encode() not in environ
    assert any(
        f"RLX_KEY_FILE={hosts_key(desk)}\0".encode() in (process / "environ").read_bytes()
        for process in processes
    )


def test_a_plan_makes_no_key_and_is_still_good_when_apply_has_made_it(desk: Desk) -> None:
    """The plan says that there will be one; nothing has moved when it is carried out."""
    desk.pair()
    planned = desk.good("plan", "--out", "plan.json")

    assert (
        f"+ {hosts_key(desk)} (65 bytes from a new key, made when this is applied)" in planned.out
    )
    assert not own_key(desk).exists()
    desk.good("apply", "--yes", "plan.json")
    key = own_key(desk).read_bytes()
    assert "Nothing to change." in desk.good("plan").out
    desk.pair(node="env = { A = '1' }")
    desk.good("apply", "--yes")
    assert own_key(desk).read_bytes() == hosts_key(desk).read_bytes() == key


def test_a_lost_key_is_made_anew_and_the_group_restarts_with_it(desk: Desk) -> None:
    """The plan says so; going back by hand brings the key of then back to the host."""
    desk.pair()
    desk.good("apply", "--yes")
    first, pids = hosts_key(desk).read_bytes(), desk.pids()
    own_key(desk).unlink()

    planned = desk.good("plan").out
    assert f"ranks 0{EN_DASH}1's inputs changed ({hosts_key(desk)})" in planned
    assert f"~ {hosts_key(desk)} (65 bytes from a new key, made when this is applied)" in planned
    desk.good("apply", "--yes")
    second = hosts_key(desk).read_bytes()
    assert own_key(desk).read_bytes() == second != first
    assert set(desk.pids().values()).isdisjoint(pids.values())
    desk.good("rollback", "--yes")
    assert hosts_key(desk).read_bytes() == first
    assert desk.status()["joined"] == 2


def test_what_is_no_key_stops_a_plan_before_anything_happens(desk: Desk) -> None:
    """A key that was damaged is not replaced behind one's back."""
    desk.pair()
    desk.good("apply", "--yes")
    own_key(desk).write_text("not any more\n")

    done = desk.run("apply", "--yes")

    assert done.code == 1
    assert f"{own_key(desk)}: this is not the key of 64 hex digits that was here" in done.err
    assert "not any more" not in done.err
    assert desk.status()["joined"] == 2


def test_the_public_wire_on_loopback_has_no_key(desk: Desk) -> None:
    """It knows no protection; a change of the wire restarts the group and takes the key away."""
    desk.pair()
    desk.good("apply", "--yes")
    assert hosts_key(desk).exists()
    desk.pair(job='wire = "rlx"')

    assert "2 of 2 ranks joined" in desk.good("apply", "--yes").out
    assert not hosts_key(desk).exists()
