"""The person's own files on a host: `[[job.files]]`, taken as they are or filled in."""

from collections.abc import Mapping
from dataclasses import dataclass

from rlxdeploy.errors import CompileError
from rlxdeploy.model.files import RemoteFile
from rlxdeploy.model.resolution import Placed, Resolution
from rlxdeploy.render.inputs import Inputs
from rlxdeploy.render.templates import Templates

# What a release holds of ours, when the working directory is the release's folder.
_RESERVED = frozenset({"env", "process", ".released"})


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The files of one host, by where they lie: in the release, or in a folder of the person's."""

    released: tuple[RemoteFile, ...] = ()
    installed: tuple[RemoteFile, ...] = ()


def group_context(resolution: Resolution) -> Mapping[str, object]:
    """Return what a templated file is given on every host alike."""
    return {
        "job": resolution.job,
        "world": resolution.world,
        "peers": resolution.peers,
        "topology": resolution.topology,
        "master_addr": resolution.master.address,
        "master_port": resolution.master.port,
    }


def job_files(
    placed: Placed,
    ranks: tuple[int, ...],
    group: Mapping[str, object],
    inputs: Inputs,
    templates: Templates,
) -> JobFiles:
    """Return the job's files on one host; a templated one is given *group*, `host` and `ranks`.

    Raises CompileError for a template that cannot be filled in, and for a file in our folders.
    """
    inside = placed.workdir == placed.tree.current
    context = {**group, "host": placed.host.name, "ranks": [*ranks]}
    files = []
    for index, file in enumerate(inputs.loaded.inventory.job.files):
        if inside and file.dest.split("/")[0] in _RESERVED:
            path = ("job", "files", index, "dest")
            what = f"{file.dest} is taken by rlxdeploy in a release"
            raise CompileError([inputs.loaded.finding(path, what, "choose another, or a workdir")])
        content = inputs.sources[file.source]
        files.append(
            RemoteFile(
                path=file.dest if inside else f"{placed.workdir}/{file.dest}",
                content=templates.fill(content, file.source, context) if file.template else content,
                mode=int(file.mode, 8),
                source=file.source,
                restarts=ranks,
            )
        )
    return JobFiles(released=tuple(files)) if inside else JobFiles(installed=tuple(files))
