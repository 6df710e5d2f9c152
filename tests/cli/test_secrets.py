"""Secrets in the life of a job: they reach the ranks, and nothing else shows or keeps them."""

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

from rlxdeploy.render.quoting import env_value
from tests.cli.desk import EN_DASH, Desk, Done

STALE = 6
SECRETS = {
    "variable": 'v4r-"quoted" $HOME `id` \\end',
    "file": "f1le'single\nsecond line\u00e9",
    "node": "n0de-7391",
    "changed": "ch4nged-5521",
}
ENV = """\
env.FROM_ENV = { from = "env:LAB_TOKEN" }
env.FROM_FILE = { from = "file:secrets/token" }
"""
NODE = 'env.OWN = { from = "env:NODE_PIN" }'


def needles(secret: str) -> dict[str, bytes]:
    """The forms in which a secret could lie about, each long enough to be no chance."""
    raw = secret.encode()
    forms = {
        "plain": raw,
        "quoted": env_value(secret)[1:-1].encode(),
        "in JSON": json.dumps(secret)[1:-1].encode(),
        "shown by Python": repr(secret)[1:-1].encode(),
        "base64": base64.b64encode(raw).rstrip(b"=")[:-1],
        "hex": raw.hex().encode(),
        "in a URL": quote(secret).encode(),
        "sha256": hashlib.sha256(raw).hexdigest().encode(),
        "sha256 with a line end": hashlib.sha256(raw + b"\n").hexdigest().encode(),
    }
    return forms | {f"line {n}": line for n, line in enumerate(raw.split(b"\n"))}


def found_in(content: bytes) -> set[str]:
    """What of any secret is in *content*."""
    return {
        f"{name}, {form}"
        for name, secret in SECRETS.items()
        for form, needle in needles(secret).items()
        if needle in content
    }


@dataclass
class Life:
    """What was said and kept from the first plan of a job to its end."""

    desk: Desk
    said: list[Done] = field(default_factory=list)
    environ: dict[str, str] = field(default_factory=dict)
    digests: set[str] = field(default_factory=set)
    kept: dict[str, bytes] = field(default_factory=dict)
    processes: list[tuple[bytes, bytes]] = field(default_factory=list)

    def run(self, *arguments: object, code: int = 0) -> Done:
        done = self.desk.run(*arguments, **self.environ)
        assert done.code == code, done
        self.said.append(done)
        self.keep()
        return done

    def keep(self) -> None:
        """Take down every file there is now, and every process of the job."""
        desk = self.desk
        for path in (one for one in desk.folder.rglob("*") if one.is_file()):
            if desk.lab / "secrets" not in path.parents:
                self.kept[f"{path.relative_to(desk.folder)} {len(self.said)}"] = path.read_bytes()
            if path.suffix == ".env":
                self.digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
        for pid in desk.left():
            process = Path(f"/proc/{pid}")
            self.processes.append(
                ((process / "cmdline").read_bytes(), (process / "environ").read_bytes())
            )


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """A job with three secrets, one of which changes, asked everything there is to ask."""
    desk = Desk(tmp_path_factory.mktemp("life"))
    try:
        life = Life(desk)
        token = desk.lab / "secrets" / "token"
        token.parent.mkdir()
        token.write_text(SECRETS["file"] + "\n", encoding="utf-8")
        life.environ = {"LAB_TOKEN": SECRETS["variable"], "NODE_PIN": SECRETS["node"]}
        desk.pair(job=ENV, node=NODE)
        live(life, token)
        yield life
    finally:
        desk.close()


def live(life: Life, token: Path) -> None:
    life.run("plan", "--diff", "--out", "plan.json")
    life.run("plan", "--json")
    life.run("show", "plan.json")
    life.run("apply", "--yes", "--diff", "plan.json")
    life.run("plan", "--out", "stale.json")
    token.write_text(SECRETS["changed"])
    life.run("plan", "--diff")
    life.run("apply", "--yes", "stale.json", code=STALE)
    life.run("apply", "--yes", "--json")
    life.run("apply", "--yes")
    life.run("probe", "--out", "survey.json")
    life.run("plan", "--survey", "survey.json", "--diff")
    for word in ("validate", "resolve", "status", "logs", "wait", "restart"):
        life.run(word)
    life.run("resolve", "--json")
    life.run("status", "--json")
    life.run("explain", "0", "--json")
    life.run("render", "--out", "tree")
    life.run("rollback", "--yes")
    life.run("stop")
    life.run("destroy", "--yes")


def test_the_ranks_get_their_secrets_byte_for_byte(life: Life) -> None:
    """A line end at the end of a file is not part of the value; quoting adds nothing."""
    environs = [dict(_variables(environ)) for _, environ in life.processes]
    first = {key: SECRETS[key] for key in ("variable", "file", "node")}
    wanted = dict(zip(("FROM_ENV", "FROM_FILE", "OWN"), first.values(), strict=True))

    assert any(wanted.items() <= one.items() for one in environs)
    assert any(one.get("FROM_FILE") == SECRETS["changed"] for one in environs)


def test_no_secret_is_in_any_output(life: Life) -> None:
    """Whatever is asked, with texts of files, as JSON, of a saved survey or a stale plan."""
    for done in life.said:
        assert found_in((done.out + done.err).encode()) == set(), done


def test_a_secret_is_in_environment_files_and_nowhere_else(life: Life) -> None:
    """Plans, surveys, the record, the journal, what is kept for diffs, logs and rendered trees."""
    holders = {name for name, content in life.kept.items() if found_in(content)}
    env_files = {name for name in holders if "/env/" in name and "/releases/" in name}

    assert env_files, "the ranks' own files hold them"
    assert {name for name in holders - env_files if "/current/env/" not in name} == set()
    assert not any(name.startswith("lab/") for name in holders)


def test_nobody_can_try_secrets_against_what_is_kept(life: Life) -> None:
    """No sha256 of a file with a secret is in any output, or in any file of the controller."""
    kept = [content for name, content in life.kept.items() if name.startswith("lab/")]
    texts = [*kept, *((done.out + done.err).encode() for done in life.said)]

    assert len(life.digests) >= 4
    for digest in life.digests:
        assert not any(digest.encode() in text for text in texts)
    assert not any(name.endswith(tuple(life.digests)) for name in life.kept)


def test_only_a_rank_itself_has_secrets_in_its_environment(life: Life) -> None:
    """No command line has one; no supervisor inherits the variable that one came from."""
    for cmdline, environ in life.processes:
        assert found_in(cmdline) == set()
        if b"rlxdeploy.runtime.supervisor" in cmdline:
            assert found_in(environ) == set()


def test_a_changed_secret_restarts_the_group_and_only_the_plan_says_so(life: Life) -> None:
    """It names the variable by keyed digests, before and after; the next apply changes nothing."""
    planned, applied, again = (life.said[n] for n in (5, 7, 8))
    lines = [line.strip() for line in planned.out.splitlines()]
    (before,) = {line for line in lines if line.startswith("-FROM_FILE")}
    (after,) = {line for line in lines if line.startswith("+FROM_FILE")}

    assert f"ranks 0{EN_DASH}1's inputs changed; ranks 0{EN_DASH}1 restart" in planned.out
    assert before.startswith('-FROM_FILE="secret:')
    assert after.startswith('+FROM_FILE="secret:')
    assert before[1:] != after[1:]
    assert not any("FROM_ENV" in line for line in lines if line[:1] in "+-")
    assert applied.document["changed"] is True
    assert "Nothing to change." in again.out


def test_a_saved_plan_is_stale_once_a_secret_has_another_value(life: Life) -> None:
    """Exit 6 says which one, and not what it was or is."""
    assert "secret file:secrets/token: not the value that it had" in life.said[6].err
    assert "env:LAB_TOKEN" not in life.said[6].err


def test_a_survey_saved_here_says_that_nothing_is_to_change(life: Life) -> None:
    """Its digests are under the same key as those of the files that would be there."""
    assert "Nothing to change." in life.said[10].out


def test_a_survey_read_elsewhere_says_that_it_cannot_be_compared(desk: Desk, life: Life) -> None:
    """Another controller has another key: what has secrets counts as changed, and a notice says so.

    Nobody learns more there than here.
    """
    survey = desk.lab / "survey.json"
    survey.write_bytes((life.desk.lab / "survey.json").read_bytes())
    (desk.lab / "secrets").mkdir()
    (desk.lab / "secrets" / "token").write_text(SECRETS["changed"])
    desk.host = life.desk.host
    desk.pair(job=ENV, node=NODE)
    planned = desk.run("plan", "--survey", "survey.json", "--adopt", **life.environ)

    assert planned.code == 0, planned
    assert "local: the survey was saved where another key digests secrets" in planned.out
    assert "inputs changed" in planned.out
    assert found_in((planned.out + planned.err).encode()) == set()


def test_a_missing_secret_stops_a_plan_and_no_validation(desk: Desk) -> None:
    """All of them are named with their places; what asks for no value needs none."""
    desk.pair(job=ENV, node=NODE)
    planned = desk.run("plan")
    inventory = f"{desk.lab}/inventory.toml"

    assert desk.good("validate").err == ""
    assert desk.good("render", "--out", "tree").code == 0
    assert planned.code == 1
    assert [line.split("; ")[0] for line in planned.err.splitlines()] == [
        f"error: inventory.toml:{line}: {key}: {what}"
        for line, key, what in (
            ("4:18", "job.env.FROM_ENV.from", "env:LAB_TOKEN: there is no such variable here"),
            ("5:19", "job.env.FROM_FILE.from", "file:secrets/token: there is no such file"),
            ("11:13", "node[0].env.OWN.from", "env:NODE_PIN: there is no such variable here"),
        )
    ], inventory


def _variables(environ: bytes) -> Iterator[tuple[str, str]]:
    for entry in environ.decode(errors="replace").split("\0"):
        name, _, value = entry.partition("=")
        yield name, value
