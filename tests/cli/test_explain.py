"""`explain` on the command line."""

from tests.cli.desk import Desk


def test_a_rank_is_explained_for_people_and_programs(desk: Desk) -> None:
    """Each value stands on a line of its own with its reason below, or as one document."""
    path = desk.pair(job="heap_mb = 3")
    line = path.read_text().splitlines().index("heap_mb = 3") + 1

    shown = desk.good("explain", "1").out.splitlines()
    document = desk.good("explain", "1", "--json", "-i", path).document

    at = next(index for index, one in enumerate(shown) if one.split() == ["HEAP_MB", "3"])
    assert shown[0] == "rank 1"
    assert shown[at + 1].strip() == f"inventory.toml:{line}:1: job.heap_mb"
    assert document["subject"] == "rank 1"
    (heap,) = [one for one in document["environment"] if one["name"] == "HEAP_MB"]
    assert heap == {"name": "HEAP_MB", "value": "3", "why": f"{path}:{line}:1: job.heap_mb"}
    assert {"name": "host", "value": "local", "why": "ssh is unwritten: the controller"} in (
        document["values"]
    )


def test_a_host_is_explained(desk: Desk) -> None:
    """It is called as the plan calls it; who is not there is a bad command line."""
    desk.pair()

    assert desk.good("explain", "local").out.startswith("host local\n")
    assert desk.run("explain", "elsewhere").code == 64
