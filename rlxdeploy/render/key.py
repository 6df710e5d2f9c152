"""The job's key on a host: one for all ranks, standbys' hosts included, and outside of releases."""

from dataclasses import replace

from rlxdeploy.model.files import HostFiles, RemoteFile, RemoteFiles
from rlxdeploy.model.resolution import Placed
from rlxdeploy.model.vocabulary import Launch

# As long as a key, so that the plan counts the same bytes, and none that a rank would take for one.
_TO_BE_MADE = "made when the plan is applied".center(64)


def key_file(placed: Placed, ranks: tuple[int, ...], key: str) -> RemoteFile:
    """Return the file of *key*, 64 hex digits, which *ranks* read; "" stands for one not made yet.

    That differs from every key on a host.  `with_key` puts the key in before anything is
    carried out.
    """
    return RemoteFile(
        path=placed.tree.key,
        content=_content(key or _TO_BE_MADE),
        mode=0o600,
        source="the job's key" if key else "a new key, made when this is applied",
        secret=True,
        restarts=ranks,
        # The ranks read it themselves; what starts them reads the other files.
        owner=placed.user if placed.launch == Launch.SYSTEMD else "",
    )


def needs_key(files: RemoteFiles) -> bool:
    """Tell whether *files* have a place for a key that is yet to be made."""
    unmade = _content(_TO_BE_MADE)
    return any(host.key and host.key.content == unmade for host in files.hosts.values())


def with_key(files: RemoteFiles, key: str) -> RemoteFiles:
    """Return *files* with *key* at every place for one."""
    content = _content(key)

    def keyed(host: HostFiles) -> HostFiles:
        return replace(host, key=replace(host.key, content=content)) if host.key else host

    return replace(files, hosts={name: keyed(host) for name, host in files.hosts.items()})


def _content(key: str) -> bytes:
    return f"{key}\n".encode()
