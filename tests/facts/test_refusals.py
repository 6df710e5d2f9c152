"""What is said of the connects of a scan that came to nothing."""

import errno

import pytest

from rlxdeploy.facts.refusals import counted, lacks


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EAFNOSUPPORT, "does not speak this kind of address (EAFNOSUPPORT)"),
        (errno.EADDRNOTAVAIL, "no address to dial from, or no free port (EADDRNOTAVAIL)"),
        (errno.ENETUNREACH, "no route leads there (ENETUNREACH)"),
        (errno.ENETDOWN, "is down (ENETDOWN)"),
        (errno.EPERM, "this machine's own firewall forbids it (EPERM)"),
        (errno.EACCES, "this machine's own firewall forbids it (EACCES)"),
        (errno.EMFILE, "no descriptors are left here (EMFILE)"),
        (errno.ENOBUFS, "no memory for more connects (ENOBUFS)"),
        (errno.EINVAL, "a route here throws away what goes there (EINVAL)"),
        (errno.ELOOP, "this machine could not connect (ELOOP)"),
    ],
)
def test_what_this_machine_lacks_is_said_with_what_to_do(number: int, why: str) -> None:
    """By count, cause, the system's own word, and a way on."""
    (lack,) = lacks({number: 7, errno.ETIMEDOUT: 9})

    assert lack.count == 7
    assert why in lack.why
    assert lack.remedy.endswith("or list the machines in ssh_hosts")
    assert counted({number: 7}) == "7 not tried"


def test_answers_of_others_are_counted_and_lacks_of_ours_come_by_number() -> None:
    """A refusal is an answer: a machine that takes no SSH."""
    failed = {
        errno.ECONNREFUSED: 3,
        errno.ETIMEDOUT: 240,
        errno.EHOSTUNREACH: 9,
        errno.EMFILE: 1,
        errno.EPERM: 2,
    }

    assert counted(failed) == "3 refused, 9 unreachable, 240 silent, 3 not tried"
    assert [lack.count for lack in lacks(failed)] == [2, 1]
    assert list(lacks({errno.ECONNREFUSED: 3})) == []


def test_nobody_to_try_is_said_so() -> None:
    """The subnet was all excluded, or our own."""
    assert counted({}) == "nobody to try"
