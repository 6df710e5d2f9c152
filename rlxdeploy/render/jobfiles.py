"""The person's own files on a host: `[[job.files]]`, taken as they are or filled in."""

from collections.abc import Iterator
from dataclasses import dataclass

from rlxdeploy.errors import CompileError
from rlxdeploy.model.files import RemoteFile
from rlxdeploy.model.job import JobFile
from rlxdeploy.model.resolution import Placed, Resolution
from rlxdeploy.render.inputs import Inputs
from rlxdeploy.render.templates import Templates

# What a release holds of ours, when the working directory is the release's folder.
_RESERVED = frozenset({"env", "process"})


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The files of one host, by where they lie: in the release, or in a folder of the person's."""

    released: tuple[RemoteFile, ...] = ()
    installed: tuple[RemoteFile, ...] = ()


def job_files(
    placed: Placed, resolution: Resolution, inputs: Inputs, templates: Templates
) -> JobFiles:
    """Return the job's files on one host.

    Raises CompileError for a template that cannot be filled in, and for a file in our folders.
    """
    inside = placed.workdir == placed.tree.current
    files = tuple(_files(placed, resolution, inputs, templates, inside=inside))
    return JobFiles(released=files) if inside else JobFiles(installed=files)


def _files(
    placed: Placed, resolution: Resolution, inputs: Inputs, templates: Templates, *, inside: bool
) -> Iterator[RemoteFile]:
    ranks = tuple(seat.rank for seat in resolution.on(placed.host.name))
    for index, file in enumerate(inputs.loaded.inventory.job.files):
        if inside and file.dest.split("/")[0] in _RESERVED:
            path = ("job", "files", index, "dest")
            what = f"{file.dest} lies in a folder of rlxdeploy's"
            raise CompileError([inputs.loaded.finding(path, what, "choose another, or a workdir")])
        yield RemoteFile(
            path=file.dest if inside else f"{placed.workdir}/{file.dest}",
            content=_content(file, placed, resolution, inputs, templates),
            mode=int(file.mode, 8),
            source=file.source,
            restarts=ranks,
        )


def _content(
    file: JobFile, placed: Placed, resolution: Resolution, inputs: Inputs, templates: Templates
) -> bytes:
    content = inputs.sources[file.source]
    if not file.template:
        return content
    context = {
        "job": resolution.job,
        "host": placed.host.name,
        "ranks": [seat.rank for seat in resolution.on(placed.host.name)],
        "world": resolution.world,
        "peers": resolution.peers,
        "topology": resolution.topology,
        "master_addr": resolution.master.address,
        "master_port": resolution.master.port,
    }
    return templates.fill(content, file.source, context)
