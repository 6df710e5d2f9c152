"""The runtime as one archive that Python imports from: the same bytes on every machine.

Nothing in it is compressed: builds of zlib differ in what they make of the same bytes, and two
controllers would see two runtimes, which RLX_PLAN is to tell apart.
"""

import io
import zipfile
from pathlib import Path

import rlxdeploy

# The earliest date a zip can hold: content alone decides the bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16


def runtime_archive(package: Path | None = None) -> bytes:
    """Return a zip of `rlxdeploy/__init__.py` and `rlxdeploy/runtime/**.py`.

    *package* is the folder of the package `rlxdeploy`, by default the running one's.
    """
    root = package or Path(rlxdeploy.__file__).parent
    sources = [root / "__init__.py", *(root / "runtime").rglob("*.py")]
    names = {path.relative_to(root).as_posix(): path for path in sources}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, path in sorted(names.items()):
            archive.writestr(_entry(f"rlxdeploy/{name}"), path.read_bytes())
    return stream.getvalue()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.create_system = 3  # Unix, whoever builds it
    entry.external_attr = _MODE
    entry.compress_type = zipfile.ZIP_STORED
    return entry
