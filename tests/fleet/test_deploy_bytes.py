"""Environment and arguments arrive byte for byte: through units of three systemds, and without."""

import random
import unicodedata
from collections.abc import Iterator

import pytest
import tomli_w

from tests.fleet.desk import Desk
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host

# Each kind of these has come to grief in somebody's unit (systemd #10659, #36488, #10604).
NASTY = (
    "a\\b\"c $HOME 50%h 'x' #y",
    "two\nlines",
    "",
    " ",
    "\t",
    "\n",
    "\n\nafter blank lines\n",
    "trailing blank ",
    " leading blank",
    "trailing backslash\\",
    "\\\\",
    "\\n is not a newline",
    "backslash\\\nnewline",
    '"',
    "'",
    "''\"\"",
    "`id`",
    "$(id)",
    "${HOME}",
    "$$",
    "%%",
    "%i %n %H",
    "# no comment",
    "; no comment",
    "A=B",
    "=",
    "-",
    "~",
    "*",
    "{a,b}",
    "!x",
    "é 漢字 \U0001f600",
    "\u200b\ufeff\u2028",
    "x" * 3000,
)
COUNT = 2200
SPECIAL = "\\\"'`$%#;= \n\t{}()[]*?~!&|<>^@-+:,./ab0"


def values() -> list[str]:
    """Return the nasty ones, then others made of specials and of all of Unicode, always alike."""
    chance = random.Random(13)  # noqa: S311 - no secret: the same table in every run
    made = ["".join(_letter(chance) for _ in range(chance.randint(1, 40))) for _ in range(COUNT)]
    return [*NASTY, *made]


def _letter(chance: random.Random) -> str:
    if chance.random() < 0.8:
        return chance.choice(SPECIAL)
    while True:
        letter = chr(chance.randrange(0x20, 0x110000))
        is_noncharacter = ord(letter) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(letter) <= 0xFDEF
        if unicodedata.category(letter) not in ("Cc", "Cs") and not is_noncharacter:
            return letter


@pytest.fixture(scope="module")
def three(fleet: Fleet) -> Iterator[list[Host]]:
    """Give one host of each release."""
    with fleet.lend(3) as hosts:
        yield hosts


@pytest.mark.parametrize("launch", ["systemd", "process"])
def test_values_and_arguments_arrive_as_written(
    fleet: Fleet, three: list[Host], launch: str
) -> None:
    """The process sees 2,200 generated values and as many arguments without a byte changed."""
    wanted = values()
    env = {f"V{number}": value for number, value in enumerate(wanted)}
    desk = Desk(fleet, f"bytes-{launch}")
    out = f"/var/tmp/{desk.job}"  # noqa: S108 - on a host of the fleet
    program = f"printf '%s\\0' \"$@\" >{out}.argv; exec env -0 >{out}.env"
    job = {"command": ["/bin/sh", "-c", program, "sh", *wanted], "launch": launch}
    desk.write_hosts(
        three,
        job=tomli_w.dumps({**job, "ready": "exec", "restart": "no"}),
        tables=tomli_w.dumps({"job": {"env": env}}),
    )
    desk.run("apply", "--yes")
    desk.run("wait", "--finished")
    for host in three:
        arrived = host.at(f"{out}.argv").read_bytes().decode().split("\0")[:-1]
        assert arrived == wanted
        pairs = (entry.partition("=") for entry in host.at(f"{out}.env").read_text().split("\0"))
        seen = {name: value for name, _, value in pairs}
        assert {name: seen.get(name) for name in env} == env
    # All have finished: nothing is to be run again.
    assert desk.json("apply", "--yes")["changed"] is False
    assert desk.json("restart")["changed"] is True
    desk.run("stop")
    assert desk.json("plan")["changes"] is True
    desk.run("destroy", "--yes")
