"""What `ssh -G` answers, read into a value."""

import pytest

from rlxdeploy.facts.ssh_config import (
    ConfigError,
    Jump,
    expand,
    expand_variables,
    parse,
    parse_jumps,
)

ANSWER = """\
host gpu
user ml
hostname 10.0.0.5
port 2222
identityfile ~/.ssh/a b
identityfile none
identityfile %d/.ssh/%r@%h
userknownhostsfile /home/ml/.ssh/known_hosts /tmp/with blank/known ~/other
globalknownhostsfile none
certificatefile none
proxycommand none
proxyjump gw,me@gw2:2022
identitiesonly yes
pubkeyauthentication true
connecttimeout none
serveraliveinterval 30
kexalgorithms a,b
hostkeyalias none
"""


def test_every_value_has_its_type() -> None:
    """Repeated keys keep their order, and `none` is nothing."""
    found = parse("gpu", ANSWER)

    assert (found.alias, found.hostname, found.port, found.user) == ("gpu", "10.0.0.5", 2222, "ml")
    assert found.identity_files == ("~/.ssh/a b", "%d/.ssh/%r@%h")
    assert found.jumps == (Jump("gw"), Jump("gw2", "me", 2022))
    assert (found.proxy_command, found.certificate_files, found.host_key_alias) == ("", (), "")
    assert found.says("identitiesonly")
    assert found.says("pubkeyauthentication")
    assert not found.says("proxyusefdpass")
    assert (found.seconds("connecttimeout"), found.seconds("serveraliveinterval")) == (None, 30.0)
    assert found.listed("kexalgorithms") == ("a", "b")


KEYS = {"true": True, "yes": True, "unbound": True, "host-bound": True, "false": False, "no": False}


@pytest.mark.parametrize(("written", "used"), KEYS.items(), ids=KEYS.keys())
def test_public_keys_are_used_unless_they_are_off(written: str, *, used: bool) -> None:
    """PubkeyAuthentication knows more words than yes and no, and each of them is a yes."""
    text = ANSWER.replace("pubkeyauthentication true", f"pubkeyauthentication {written}")

    assert parse("gpu", text).uses_keys is used


def test_paths_with_blanks_are_put_together_again() -> None:
    """`-G` drops the quotes: a word that begins no path belongs to the one before."""
    found = parse("gpu", ANSWER)

    paths = ("/home/ml/.ssh/known_hosts", "/tmp/with blank/known", "~/other")  # noqa: S108  # a name only
    assert found.known_hosts_files == paths
    assert found.remembers_in == paths[0]


def test_an_answer_without_a_port_is_none() -> None:
    """What is no answer of `ssh -G` is refused."""
    with pytest.raises(ConfigError, match="port"):
        parse("gpu", "hostname a\nuser b\n")


JUMPS = {
    "gw": Jump("gw"),
    "me@gw": Jump("gw", "me"),
    "gw:22": Jump("gw", "", 22),
    "me@[fd00::1]:2022": Jump("fd00::1", "me", 2022),
    "a@b@gw": Jump("gw", "a@b"),
    "ssh://me@gw:2022": Jump("gw", "me", 2022),
    "ssh://a%40b@gw": Jump("gw", "a@b"),
}


@pytest.mark.parametrize(("text", "jump"), JUMPS.items(), ids=JUMPS.keys())
def test_a_jump_is_user_host_and_port(text: str, jump: Jump) -> None:
    """Each part may be left out but the host, and a jump reads as it is written."""
    assert parse_jumps(f"first,{text}") == (Jump("first"), jump)
    assert parse_jumps(str(jump)) == (jump,)


@pytest.mark.parametrize("text", ["", "a,,b", "gw:port", "[fd00::1", "me@"])
def test_no_jump_is_an_error(text: str) -> None:
    """What names no host is refused."""
    with pytest.raises(ConfigError):
        parse_jumps(text)


def test_tokens_are_replaced_once() -> None:
    """A percent sign that a token brings in is not read again, and unknown tokens stay."""
    assert expand("%h %% %n %Z", {"h": "%n", "n": "x", "%": "%"}) == "%n % x %Z"


def test_a_variable_that_is_not_set_is_an_error() -> None:
    """As ssh does: an empty path would be another file."""
    assert expand_variables("${A}/b", {"A": "/a"}) == "/a/b"
    with pytest.raises(ConfigError, match="NONE_SUCH"):
        expand_variables("${NONE_SUCH}/b", {})
