"""Contents on their way to a host: whatever a file holds, it arrives byte for byte."""

from rlxdeploy.edge.contents import SEPARATOR, Payload
from rlxdeploy.model.files import HostFiles, RemoteFile, RemoteFiles
from rlxdeploy.model.step import InstallFile, ReleasedFile, StageRelease, StopRanks, SwitchRelease
from tests.edge.deployment import Lab

UNICODE = "".join(map(chr, (*range(0x20, 0x7F), *range(0x80, 0x2100)))).encode()
CONTENTS = {
    "env/0.env": b'A="$HOME `id` \\"\\\\ * ? [a]"\n',
    "empty": b"",
    "deep/down/blank": b" \t\n\n",
    "no newline": b"-n %s \\n",
    "unicode": UNICODE,
    "no encoding": bytes(range(0x80, 0x100)),
    "separator": b"a" + SEPARATOR + b"b\n",
    "controls": bytes(range(1, 0x20)) + b"\x7f\n",
    "nul": b"a\0b\n",
    "large": b"0123456789abcde\n" * 8192,
    "after empty": b"\n",
}


def test_files_arrive_byte_for_byte_with_their_modes(lab: Lab) -> None:
    """Texts and others, in the release and elsewhere, in whatever order: content, mode, folder."""
    modes = [0o600, 0o640, 0o755]
    released = tuple(
        RemoteFile(path, content, modes[number % 3], "test")
        for number, (path, content) in enumerate(CONTENTS.items())
    )
    installed = tuple(
        RemoteFile(f"{lab.folder}/else where/{number}", content, modes[number % 3], "test")
        for number, content in enumerate(CONTENTS.values())
    )
    files = RemoteFiles({lab.name: HostFiles(lab.name, released, installed)}, "r1", "p", 1)
    stage = StageRelease(
        "r1",
        tuple(ReleasedFile(one.path, one.digest, len(one.content), one.mode) for one in released),
    )
    install = (InstallFile(one.path, one.digest, len(one.content), one.mode) for one in installed)
    plan = lab.plan((stage,), (StopRanks((0,)), SwitchRelease("r1"), *install))
    assert not lab.carry_out(plan, files).outcomes.failed

    for file in (*released, *installed):
        place = lab.home / "current" / file.path
        assert place.read_bytes() == file.content, file.path
        assert place.stat().st_mode & 0o777 == file.mode, file.path


def test_only_what_every_shell_can_write_is_a_text() -> None:
    """What holds a control, is large, or lies where others may write is cut out by a process."""
    payload = Payload(None, "m")
    for path, content in CONTENTS.items():
        payload.lay(path, 0o600, "", content)
    payload.lay("/home/ann/x", 0o600, "", b"x", safe=False)
    put = [call.split(" 600 ")[0] for call in payload.calls() if call.startswith("put ")]

    assert put == ["put separator", "put controls", "put nul", "put large", "put /home/ann/x"]
    texts = payload.texts.split(SEPARATOR)
    assert (texts[0], texts[-1]) == (b"m", b"")
    assert texts[1:-1] == [CONTENTS[one] for one in CONTENTS if f"put {one}" not in put]
