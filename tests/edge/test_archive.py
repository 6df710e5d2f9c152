"""The runtime travels as one archive that an interpreter imports from."""

import os
import shutil
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import rlxdeploy
from rlxdeploy.edge.archive import runtime_archive

PACKAGE = Path(rlxdeploy.__file__).parent


def test_the_same_sources_make_the_same_bytes(tmp_path: Path) -> None:
    """Neither the time, the place nor a compiled file beside the sources changes the archive."""
    copy = tmp_path / "rlxdeploy"
    shutil.copytree(PACKAGE, copy)
    for path in copy.rglob("*.py"):
        os.utime(path, (0, 0))
    (copy / "runtime" / "left.pyc").write_bytes(b"left")

    assert runtime_archive(copy) == runtime_archive()


def test_no_compressor_has_a_say_in_the_bytes() -> None:
    """Every source stands in the archive as it is: zlib builds differ in what they write."""
    with zipfile.ZipFile(BytesIO(runtime_archive())) as archive:
        entries = archive.infolist()

    assert len(entries) > 10
    assert {one.compress_type for one in entries} == {zipfile.ZIP_STORED}
    assert {one.date_time for one in entries} == {(1980, 1, 1, 0, 0, 0)}


def test_an_interpreter_imports_the_runtime_from_it(tmp_path: Path) -> None:
    """The archive under any name on PYTHONPATH is the package, and holds nothing of ours else."""
    archive = tmp_path / "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
    archive.write_bytes(runtime_archive())
    code = (
        "import rlxdeploy.runtime.envfile as runtime; print(runtime.__file__)\n"
        "try: import rlxdeploy.model\n"
        "except ImportError: print('alone')"
    )

    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(archive)},
    )

    assert done.stdout.split() == [f"{archive}/rlxdeploy/runtime/envfile.py", "alone"]
