"""Who holds the job's ports."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.facts import holders
from rlxdeploy.facts.question import Answer, Answers
from rlxdeploy.model.survey import PortHolder, RankSeen
from rlxdeploy.model.targets import Enquiry

ENQUIRY = Enquiry("demo", ports=(29500, 29501))


def read(text: str, *ranks: RankSeen) -> tuple[PortHolder, ...]:
    return holders.parse(ENQUIRY, Answers({"ports": Answer(text)}), ranks)


def kernel(address: str) -> str:
    """Write an address as /proc/net/tcp does on a little-endian host."""
    raw = ipaddress.ip_address(address).packed
    return "".join(raw[at : at + 4][::-1].hex().upper() for at in range(0, len(raw), 4))


@given(st.ip_addresses(), st.integers(1, 65535))
def test_any_endpoint_of_the_kernel_reads_back(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int
) -> None:
    """Both families read back as written; a mapped IPv4 address is IPv4."""
    (seen,) = read(f"held|{kernel(str(address))}:{port:04X} 77\n")
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None

    assert (seen.address, seen.port) == (str(mapped or address), port)


def test_a_unit_of_ours_is_its_rank() -> None:
    """The control group names the unit; another job's unit is a stranger."""
    text = (
        "held|0100007F:733C 11\npid|5\ncommand|/usr/bin/python3 -m x \ncomm|python3\n"
        "cgroup|0::/system.slice/system-rlx\\x2ddemo.slice/rlx-demo@1.service\nforebear|5\n"
        "held|00000000:733D 12\npid|6\ncommand|\ncomm|kthread\n"
        "cgroup|1:name=systemd:/system.slice/rlx-demo2@1.service/sub\nforebear|6\n"
    )

    assert read(text) == (
        PortHolder("127.0.0.1", 29500, 5, "/usr/bin/python3 -m x", "rlx-demo@1.service", 1, "demo"),
        PortHolder("0.0.0.0", 29501, 6, "kthread", "rlx-demo2@1.service", None, "demo2"),  # noqa: S104  # a holder's, not ours
    )


OTHERS = {
    "its mark tells whose it is": (
        'job|sweep\npath|/r/rlx/store/0a:/lib\nmark|{"job": "sweep", "inventory": "/lab/s.toml"}\n',
        "stop it with `rlxdeploy stop /lab/s.toml`, or write another port",
    ),
    "its inventory has a blank in its name": (
        'job|sweep\nmark|{"job": "sweep", "inventory": "/my lab/s.toml"}\n',
        "stop it with `rlxdeploy stop '/my lab/s.toml'`, or write another port",
    ),
    "its mark cannot be read": (
        'job|sweep\nmark|{"inven\n',
        "stop it with `rlxdeploy stop INVENTORY`, or write another port",
    ),
    "its mark is of another make": (
        "job|sweep\nmark|[1]\n",
        "stop it with `rlxdeploy stop INVENTORY`, or write another port",
    ),
    "it is nobody's": ("", "stop it, or write another port"),
}


@pytest.mark.parametrize(("said", "remedy"), OTHERS.values(), ids=OTHERS)
def test_a_rank_of_another_job_of_ours_can_be_stopped(said: str, remedy: str) -> None:
    """The way is that job's own inventory; a stranger's process is for its owner to stop."""
    (holder,) = read(f"held|0100007F:733C 11\npid|5\ncommand|python3 x\n{said}")

    assert (holder.rank, holder.remedy) == (None, remedy)
    assert str(holder) == "pid 5 (python3 x)" + (" for the job sweep" if said else "")


@pytest.mark.parametrize(
    ("held", "at", "port", "blocks"),
    [
        ("0.0.0.0", "10.0.0.1", 1, True),  # noqa: S104 - a holder's
        ("::", "10.0.0.1", 1, True),
        ("10.0.0.1", "::", 1, True),
        ("10.0.0.1", "10.0.0.1", 1, True),
        ("10.0.0.1", "10.0.0.1", 2, False),
        ("10.0.0.2", "10.0.0.1", 1, False),
        ("fe80::1%eth0", "fe80::1", 1, True),
        ("localhost", "10.0.0.1", 1, True),
    ],
)
def test_a_holder_is_in_the_way_of_its_own_address(
    held: str, at: str, port: int, *, blocks: bool
) -> None:
    """Where either is a wildcard too; an address nobody can read might be any."""
    assert PortHolder(held, 1).blocks(at, port) is blocks


def test_a_child_of_a_supervised_rank_is_that_rank() -> None:
    """Without units a forebear's number tells whose child holds the port."""
    text = "held|0100007F:733C 11\npid|9\ncommand|worker\nforebear|9\nforebear|8\nforebear|1\n"

    (seen,) = read(text, RankSeen(4, "active", pid=8), RankSeen(0, "inactive"))

    assert (seen.pid, seen.rank) == (9, 4)


def test_a_holder_the_host_will_not_name_is_still_a_holder() -> None:
    """Without privilege another user's process stays unknown: pid 0."""
    assert read("held|0100007F:733C 11\n") == (PortHolder("127.0.0.1", 29500),)


def test_a_mac_tells_by_lsof() -> None:
    """The fields of lsof give process, command and address; other ports are left out."""
    text = "lsof|p70\nlsof|cpython3\nlsof|f3\nlsof|n*:29500\nlsof|n[::1]:29501\nlsof|n*:22\n"

    assert read(text) == (
        PortHolder("::", 29500, 70, "python3"),
        PortHolder("::1", 29501, 70, "python3"),
    )
