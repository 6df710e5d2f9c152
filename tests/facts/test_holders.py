"""Who holds the job's ports."""

import ipaddress

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
        PortHolder("127.0.0.1", 29500, 5, "/usr/bin/python3 -m x", "rlx-demo@1.service", 1),
        PortHolder("0.0.0.0", 29501, 6, "kthread", "rlx-demo2@1.service", None),  # noqa: S104  # a holder's, not ours
    )


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
