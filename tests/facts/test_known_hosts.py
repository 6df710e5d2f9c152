"""known_hosts, judged as OpenSSH judges."""

import base64
import struct

import pytest

from rlxdeploy.facts.known_hosts import Standing, judge, known_line, known_name, parse
from rlxdeploy.facts.ssh_keys import PublicKey


def key(number: int, kind: str = "ssh-ed25519") -> PublicKey:
    body = kind.encode()
    return PublicKey(kind, struct.pack(">I", len(body)) + body + bytes([number] * 36))


OLD, NEW, RSA = key(1), key(2), key(3, "ssh-rsa")
HASHED = known_line("host", NEW, salt=bytes(20)).split()[0]
BY_AUTHORITY = f"@cert-authority host {NEW.line}"
ODD = f"host\nx y\nhost ssh-ed25519 !!\nhost {NEW.line}"
MIXED_UP = f"host ssh-rsa {NEW.line.split()[1]}"
CASES = {
    "nothing": ("", "host", 22, "", Standing.UNKNOWN),
    "plain": (f"host {NEW.line}", "host", 22, "", Standing.KNOWN),
    "upper case": (f"HOST {NEW.line}", "Host", 22, "", Standing.KNOWN),
    "among others": (f"a,host,b {NEW.line} comment", "host", 22, "", Standing.KNOWN),
    "pattern": (f"ho*,!hot {NEW.line}", "host", 22, "", Standing.KNOWN),
    "negated": (f"ho*,!host {NEW.line}", "host", 22, "", Standing.UNKNOWN),
    "question mark": (f"h?st {NEW.line}", "host", 22, "", Standing.KNOWN),
    "brackets are no set": (f"[host]:2 {NEW.line}", "h", 2, "", Standing.UNKNOWN),
    "another port": (f"[host]:2 {NEW.line}", "host", 2, "", Standing.KNOWN),
    "bare name, same key": (f"host {NEW.line}", "host", 2, "", Standing.KNOWN),
    "bare name, another key": (f"host {OLD.line}", "host", 2, "", Standing.UNKNOWN),
    "hashed": (f"{HASHED} {NEW.line}", "host", 22, "", Standing.KNOWN),
    "hashed for another": (f"{HASHED} {NEW.line}", "other", 22, "", Standing.UNKNOWN),
    "changed": (f"host {OLD.line}", "host", 22, "", Standing.CHANGED),
    "another type is changed too": (f"host {RSA.line}", "host", 22, "", Standing.CHANGED),
    "any of several": (f"host {OLD.line}\nhost {NEW.line}", "host", 22, "", Standing.KNOWN),
    "alias": (f"cluster {NEW.line}", "host", 2, "Cluster", Standing.KNOWN),
    "alias hides the name": (f"host {NEW.line}", "host", 22, "cluster", Standing.UNKNOWN),
    "revoked": (f"host {NEW.line}\n@revoked * {NEW.line}", "host", 22, "", Standing.REVOKED),
    "an authority is no key": (
        f"@cert-authority host {NEW.line}",
        "host",
        22,
        "",
        Standing.UNKNOWN,
    ),
    "comment": (f"#host {NEW.line}", "host", 22, "", Standing.UNKNOWN),
    "odd lines": (
        f"host\nx y\nhost ssh-ed25519 !!\nhost {NEW.line}",
        "host",
        22,
        "",
        Standing.KNOWN,
    ),
    "type and key differ": (
        f"host ssh-rsa {NEW.line.split()[1]}",
        "host",
        22,
        "",
        Standing.UNKNOWN,
    ),
}


@pytest.mark.parametrize(
    ("text", "host", "port", "alias", "standing"), CASES.values(), ids=CASES.keys()
)
def test_a_key_stands_as_openssh_says(
    text: str, host: str, port: int, alias: str, standing: Standing
) -> None:
    """Every line is read on its own, and what it says of the key counts."""
    assert judge(list(parse(text, "known")), host, port, alias, NEW).standing is standing


def test_the_evidence_names_file_and_line() -> None:
    """A changed key is told with the place of the line to remove."""
    lines = list(parse(f"# mine\n\nhost {OLD.line}\n", "known"))
    judgement = judge(lines, "host", 22, "", NEW)

    assert [line.where for line in judgement.evidence] == ["known:3"]


@pytest.mark.parametrize("salt", [None, b"12345678901234567890"], ids=["plain", "hashed"])
def test_what_is_written_is_known(salt: bytes | None) -> None:
    """A line of ours makes the key known, and a hashed one shows no name."""
    name = known_name("Host", 2022)
    line = known_line(name, NEW, salt)

    assert judge(list(parse(line, "f")), "host", 2022, "", NEW).standing is Standing.KNOWN
    assert ("host" in line) is (salt is None)


def test_a_bad_hash_knows_nobody() -> None:
    """A hashed name that cannot be decoded costs its line."""
    for names in ("|1|x", "|1|!|!", f"|1|{base64.b64encode(b'a').decode()}|"):
        lines = list(parse(f"{names} {NEW.line}", "f"))
        assert judge(lines, "host", 22, "", NEW).standing is Standing.UNKNOWN
