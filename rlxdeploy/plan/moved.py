"""What differs between a saved plan and the one that the hosts call for now."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from rlxdeploy.model.keyed import UNREADABLE
from rlxdeploy.model.plan import Change, FileChange, HostPlan, Plan
from rlxdeploy.model.step import (
    InstallFile,
    MarkDeployment,
    RemoveFile,
    StageRelease,
    Step,
    StopRanks,
    StoreFile,
)

# What all parts of a plan have in common.
_WHOLE = ("job", "world", "topology", "generation", "plan", "release", "deployment")

# What a host's facts decide of a rank.
_OF_A_RANK = ("node", "host", "device", "address", "launch", "layers")

# Steps of which a host may have several.
_SEVERAL = (StoreFile, StopRanks, InstallFile, RemoveFile)

# So many keys and files tell what has happened to an inventory.
_NAMED = 12


def moved(saved: Plan, fresh: Plan) -> tuple[str, ...]:
    """Return what differs between a saved plan and the one the hosts call for now; () if nothing.

    Who plans, from where and when is no difference; nor is a key or a file of the controller that
    changes nothing on any host.  Where anything differs, those that have changed are named first.
    """
    found = [*_moved_secrets(saved, fresh)]
    for what in _WHOLE:
        was, now = getattr(saved, what), getattr(fresh, what)
        if was != now:
            found.append(f"{what}: {was} when it was saved, {now} now")
    found += _moved_ranks(saved, fresh)
    for name in sorted({*saved.hosts, *fresh.hosts}):
        before, after = saved.hosts.get(name), fresh.hosts.get(name)
        if before is None or after is None:
            found.append(f"{name}: {'not in the saved plan' if before is None else 'gone'}")
        else:
            lines = _moved(_deeds(before), _deeds(after)) or [*_touched(before, after)]
            found += [f"{name}: {line}" for line in lines]
    found += _drifted(saved, fresh)
    return (*_moved_sources(saved, fresh), *found) if found else ()


def _moved_sources(saved: Plan, fresh: Plan) -> Iterator[str]:
    """Yield the keys and files of the controller that have changed, where both plans tell them."""
    was, now = saved.sources, fresh.sources
    differing = sorted(name for name in {*was, *now} if was.get(name) != now.get(name))
    for name in differing[:_NAMED] if was and now else ():
        how = "is new" if name not in was else "has changed" if name in now else "is gone"
        yield f"{name} {how} since the plan was saved"
    if was and now and len(differing) > _NAMED:
        yield f"and {len(differing) - _NAMED} more keys or files"


def _moved_ranks(saved: Plan, fresh: Plan) -> Iterator[str]:
    """Yield what the hosts' facts now make of a rank that both plans have."""
    now = {row.rank: row for row in fresh.ranks}
    for row in saved.ranks:
        other = now.get(row.rank, row)
        for what in _OF_A_RANK:
            was, will = getattr(row, what), getattr(other, what)
            if was != will:
                told = f"{was or 'none'} when it was saved, {will or 'none'} now"
                yield f"rank {row.rank}: {what}: {told}"


def _moved_secrets(saved: Plan, fresh: Plan) -> Iterator[str]:
    for source in sorted({*saved.secrets, *fresh.secrets}):
        if saved.secrets.get(source) != fresh.secrets.get(source):
            yield f"secret {source}: not the value that it had when the plan was saved"


def _drifted(saved: Plan, fresh: Plan) -> Iterator[str]:
    yield from (f"since then {one}" for one in fresh.drift if one not in saved.drift)
    yield from (f"no longer so: {one}" for one in saved.drift if one not in fresh.drift)


def _touched(saved: HostPlan, fresh: HostPlan) -> Iterator[str]:
    """Yield the files that the same steps would now replace in another state than was shown."""
    was, now = ({one.path: _as_found(one) for one in part.changes} for part in (saved, fresh))
    for path in sorted({*was, *now}):
        if was.get(path) != now.get(path):
            yield f"{path} is not as it was when the plan was saved"


def _as_found(change: FileChange) -> tuple[Change, str]:
    # Two plans may name one secret content by two keys; its host tells as drift that it changed.
    return change.change, "" if change.before.startswith(UNREADABLE) else change.before


def _moved(saved: list[Step], fresh: list[Step]) -> list[str]:
    gone = {_about(step): step for step in saved if step not in fresh}
    new = {_about(step): step for step in fresh if step not in saved}
    lines = [f"no longer called for: {gone[what]}" for what in gone if what not in new]
    lines += [f"now called for: {new[what]}" for what in new if what not in gone]
    for what, step in gone.items():
        lines += _differences(step, new[what]) if what in new else ()
    return lines or ([] if gone or saved == fresh else ["the same steps in another order"])


def _about(step: Step) -> str:
    """Return by what a step is known again in another plan: there is one of most kinds."""
    return str(step) if isinstance(step, _SEVERAL) else step.kind


def _differences(saved: Step, fresh: Step) -> Iterator[str]:
    """Yield in what one step differs, but for what is told of the whole plan."""
    was, now = _fields(saved), _fields(fresh)
    differing = [
        name for name in sorted({*was, *now} - {*_WHOLE}) if was.get(name) != now.get(name)
    ]
    if isinstance(fresh, StageRelease | InstallFile):
        # A person is helped by the name of a file, and not by its digests.
        yield from [f"{fresh}: it differs in {', '.join(differing)}"] if differing else ()
        return
    for name in differing:
        yield f"{fresh}: {name}: {was.get(name)} when it was saved, {now.get(name)} now"


def _fields(step: Step) -> Mapping[str, object]:
    """Return what a step consists of, by name: the files of a release by their paths."""
    if isinstance(step, MarkDeployment):
        return step.fields
    if isinstance(step, StageRelease):
        return {one.path: one for one in step.files}
    return asdict(step)


def _deeds(part: HostPlan) -> list[Step]:
    """Return the steps without what tells of the planner alone."""
    told = {"applied_at", "controller", "owner", "inventory"}
    return [
        MarkDeployment({key: value for key, value in step.fields.items() if key not in told})
        if isinstance(step, MarkDeployment)
        else step
        for step in (*part.stage, *part.go, *part.confirm)
    ]
