"""A group of hosts as values: resolved, rendered, and surveyed as an apply would leave them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from pydantic import TypeAdapter

from rlxdeploy.model.files import HostFiles, RemoteFile, RemoteFiles
from rlxdeploy.model.host import Host, Tree
from rlxdeploy.model.plan import HostPlan, Plan, Site
from rlxdeploy.model.resolution import Endpoint, Placed, Resolution, Seat, Share
from rlxdeploy.model.step import InstallFile, MarkDeployment, RemoveFile, StageRelease
from rlxdeploy.model.survey import (
    Deployed,
    FileSeen,
    Hardware,
    HostFacts,
    JobSeen,
    Network,
    Platform,
    RankSeen,
    Survey,
)
from rlxdeploy.plan.order import Order

JOB = "t"
_DEPLOYED = TypeAdapter(Deployed)
SHARE = Share(None, "fp16", "none", 0, None, None, "active")
PLATFORM = Platform(
    *("linux", "x86_64", "h", "m", "b", "systemd", "252", "glibc 2.36"),
    *("/usr/bin/python3", "3.11.2", "1.24", "ann", 1000, "/home/ann", "/home/ann/.local/share"),
    *("/run/user/1000", 0.0),
)
ORDER = Order(
    deployment="d1",
    owner="ann",
    controller="desk",
    inventory="/lab/inventory.toml",
    now=10_000.0,
    ready="notify",
    join_timeout=120.0,
    boot=True,
    secret=b"k" * 32,
)


@dataclass(frozen=True)
class World:
    """Ranks on hosts: *layout* maps each host to its ranks; the rest goes into the files."""

    layout: Mapping[str, tuple[int, ...]] = field(
        default_factory=lambda: {"a": (0, 1), "b": (2, 3)}
    )
    launch: str = "process"
    notes: Mapping[int, str] = field(default_factory=dict)
    readme: str = "read me\n"
    unit: str = "[Unit]\n"
    secret: bool = False
    key: str = ""

    @property
    def resolution(self) -> Resolution:
        seats = [self._seat(rank, host) for host, ranks in self.layout.items() for rank in ranks]
        return Resolution(
            job=JOB,
            world=len(seats),
            topology="mesh",
            wire="rlx",
            security="none",
            seats=tuple(sorted(seats, key=lambda seat: seat.rank)),
            hosts={name: self.placed(name) for name in self.layout},
            master=Endpoint("10.0.0.1", 29400),
        )

    def _seat(self, rank: int, host: str) -> Seat:
        peer = Endpoint("10.0.0.1", 29500 + rank)
        return Seat(
            *(rank, host, 0, host, 0, 0, 1, 0, ("cpu",), None, peer, None),
            *("/usr/bin/python3", ("/bin/true",), {}, SHARE),
            why={"rank": "file order"},
        )

    def placed(self, name: str) -> Placed:
        return Placed(
            *(Host(name, name), tree(self.launch), self.launch, "ml", "root"),
            *(tree(self.launch).current, "/usr/bin/python3"),
        )

    def site(self, name: str) -> Site:
        return Site(Host(name, name), tree(self.launch), self.launch)

    def render(self, generation: int) -> RemoteFiles:
        hosts = {name: self._files(name, generation) for name in self.layout}
        told = json.dumps([[f.digest for f in (*h.released, *h.installed)] for h in hosts.values()])
        return RemoteFiles(hosts, digest(told)[:12], self._plan(generation), generation)

    def _plan(self, generation: int) -> str:
        return digest(f"{sorted(self.layout.items())} {generation}")[:16]

    def _files(self, host: str, generation: int) -> HostFiles:
        ranks = self.layout[host]
        envs = tuple(self._env(rank, generation) for rank in ranks)
        readme = RemoteFile("README", self.readme.encode(), 0o644, "README")
        archive = RemoteFile("", b"PK archive", 0o644, "rlxdeploy.runtime", restarts=ranks)
        installed: tuple[RemoteFile, ...] = ()
        if self.launch != "process":
            path = f"{tree(self.launch).units}/rlx-{JOB}@.service"
            unit = RemoteFile(path, self.unit.encode(), 0o644, "rlx@.service.j2", restarts=ranks)
            installed = (unit,)
        return HostFiles(host, (*envs, readme), installed, (archive,), self._key(ranks))

    def _key(self, ranks: tuple[int, ...]) -> RemoteFile | None:
        path, content = tree(self.launch).key, self.key.encode()
        owner = "ml" if self.launch == "systemd" else ""
        key = RemoteFile(path, content, 0o600, "key", secret=True, restarts=ranks, owner=owner)
        return key if content else None

    def _env(self, rank: int, generation: int) -> RemoteFile:
        note = self.notes.get(rank, "")
        text = f'RANK="{rank}"\nRLX_PLAN="{self._plan(generation)}"\nNOTE="{note}"\n'
        return RemoteFile(
            f"env/{rank}.env", text.encode(), 0o600, "rank.env.j2", self.secret, (rank,)
        )


def tree(launch: str) -> Tree:
    if launch == "systemd":
        return Tree(JOB, "/var/lib/rlx", "/run/rlx", "/etc/systemd/system")
    return Tree(JOB, "/home/ann/.local/share/rlx", "/run/user/1000/rlx")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def surveyed(jobs: Mapping[str, JobSeen], failed: Mapping[str, str] | None = None) -> Survey:
    """Return what hosts would say that have *jobs*."""
    hardware = Hardware("cpu", 1, 1, 1, {}, ())
    return Survey(
        {
            name: HostFacts(Host(name, name), hardware, Network(()), PLATFORM, job)
            for name, job in jobs.items()
        },
        failed or {},
    )


def bare(world: World) -> Survey:
    """Return the survey of hosts that have nothing of ours."""
    return surveyed({name: JobSeen() for name in world.layout})


def settled(plan: Plan, files: RemoteFiles, before: Survey) -> Survey:
    """Return the survey that follows when *plan* has been carried out to the letter."""
    jobs = {name: facts.job for name, facts in before.hosts.items()}
    for name, part in plan.hosts.items():
        jobs[name] = _after(part, files.hosts.get(name), jobs[name])
    return surveyed(jobs)


def _after(part: HostPlan, files: HostFiles | None, job: JobSeen) -> JobSeen:
    if files is None:
        return JobSeen()
    seen = dict(job.files)
    contents = {one.digest: one for one in (*files.released, *files.installed, *files.stored)}
    if any(isinstance(step, StageRelease) for step in part.stage):
        current = f"{part.tree.current}/"
        seen = {path: one for path, one in seen.items() if not path.startswith(current)}
        seen |= {f"{current}{one.path}": _seen(one) for one in files.released}
        job = replace(job, current=_release(part), releases=(*job.releases, _release(part)))
    seen |= {part.tree.stored(one.digest): _seen(one) for one in files.stored}
    for step in part.go:
        if isinstance(step, InstallFile):
            file = contents[step.digest] if step.digest else files.key
            assert file is not None
            seen[step.path] = _seen(file)
        if isinstance(step, RemoveFile):
            seen.pop(step.path, None)
        if isinstance(step, MarkDeployment):
            job = replace(job, deployed=_DEPLOYED.validate_python(dict(step.fields)))
    ranks = job.deployed.ranks if job.deployed else ()
    up = tuple(RankSeen(rank, "active", ready=True, pid=1, enabled=True) for rank in ranks)
    return replace(job, files=seen, ranks=up)


def _release(part: HostPlan) -> str:
    return next(step.release for step in part.stage if isinstance(step, StageRelease))


def _seen(file: RemoteFile) -> FileSeen:
    return FileSeen(file.digest, file.mode, file.owner or "ann", len(file.content))


def with_rank(survey: Survey, host: str, rank: RankSeen) -> Survey:
    """Return *survey* with one rank seen otherwise."""
    facts = survey.hosts[host]
    ranks = tuple(rank if one.rank == rank.rank else one for one in facts.job.ranks)
    job = replace(facts.job, ranks=ranks)
    return replace(survey, hosts={**survey.hosts, host: replace(facts, job=job)})


def as_text(plan: Plan) -> str:
    """Return everything a plan holds, to look for what it must not hold."""
    return json.dumps(asdict(plan), default=str)
