"""How fast a host is: one matrix product a device, and one read that no cache can answer.

As upstream measures it, so that numbers of both may stand side by side: a row of 4,096 floats times
a square of them, and 64 MiB of the largest checkpoint file at a place whose pages are cold.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rlxdeploy.facts.places import LOOK, tagged
from rlxdeploy.facts.question import Answers, Question, quoted
from rlxdeploy.model.survey import Hardware
from rlxdeploy.model.targets import Enquiry

NAME = "benchmark"

# As Python says it of a library that is not there.
_LACKING = re.compile(r"^No module named '([^']+)'$")

# Any Python from 3.6 on will do.  What fails says why in place of its line.
_PROGRAM = r"""
import ctypes, os, random, sys, time

def best(product):
    found = 0.0
    for _ in range(3):
        count, took, start = 0, 0.0, time.perf_counter()
        while took < 0.03:
            product()
            count, took = count + 1, time.perf_counter() - start
        found = max(found, 2 * 4096 * 4096 * count / took / 1e9)
    return found

def processor():
    import numpy
    row, square = numpy.ones((1, 4096), "f4"), numpy.ones((4096, 4096), "f4")
    print("gflops|cpu||%.3f" % best(lambda: row @ square))

def cards():
    import torch
    def on(device, finish):
        row, square = (torch.ones(rows, 4096, device=device) for rows in (1, 4096))
        def product():
            torch.mm(row, square)
            finish()
        product()
        return best(product)
    label = "rocm" if torch.version.hip else "cuda"
    for index in range(torch.cuda.device_count()):
        speed = on("cuda:%d" % index, lambda: torch.cuda.synchronize(index))
        print("gflops|%s|%d|%.3f" % (label, index, speed))
    metal = getattr(torch.backends, "mps", None)
    if metal and metal.is_available():
        print("gflops|metal||%.3f" % on("mps", torch.mps.synchronize))

PAGE, MIB = 4096 if not hasattr(os, "sysconf") else os.sysconf("SC_PAGE_SIZE"), 1 << 20

def is_cold(file, offset, length):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_int64]
    at = libc.mmap(None, length, 1, 1, file, offset)
    if at in (None, ctypes.c_void_p(-1).value):
        return False
    pages = (ctypes.c_ubyte * -(-length // PAGE))()
    known = libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(length), pages) == 0
    libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(length))
    return known and 10 * sum(page & 1 for page in pages) <= len(pages)

def cold_read(folder):
    sizes = [(e.stat().st_size, e.path) for e in os.scandir(folder) if e.is_file()]
    size, path = max(sizes, default=(0, ""))
    length = min(size, 64 * MIB)
    if size <= 8 * MIB:
        return None
    file = os.open(path, os.O_RDONLY)
    try:
        for _ in range(8):
            offset = random.randint(0, (size - length) // PAGE) * PAGE
            if is_cold(file, offset, length):
                start, left = time.perf_counter(), length
                while left:
                    piece = os.pread(file, min(left, MIB), offset)
                    if not piece:
                        break
                    offset, left = offset + len(piece), left - len(piece)
                return (length - left) / (time.perf_counter() - start) / 1e6
    finally:
        os.close(file)

def written(folder):
    path = os.path.join(folder, ".rlx-io-probe-%d" % (time.time() * 1e9))
    piece = os.urandom(MIB)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        start = time.perf_counter()
        for _ in range(16):
            os.write(file, piece)
        os.fsync(file)
        return 16 * MIB / (time.perf_counter() - start) / 1e6
    finally:
        os.close(file)
        os.unlink(path)

def disk():
    folder = os.path.join(os.path.expanduser("~"), os.path.expanduser(sys.argv[1]))
    print("io|%.3f" % (cold_read(folder) or written(folder)))

os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
for measure in (processor, disk, cards) if sys.argv[1:] else (processor, cards):
    try:
        measure()
    except Exception as error:
        why = (str(error) or type(error).__name__).split("\n")[0]
        print("failed|%s|%s" % (measure.__name__, why))
    sys.stdout.flush()
"""


@dataclass(frozen=True, slots=True)
class Speeds:
    """GFLOP/s by device label and ident, and MB/s of the first folder; 0 is not measured.

    *failed* tells why processor, cards or disk could not be.
    """

    gflops: Mapping[tuple[str, str], float]
    io_mbps: float
    failed: Mapping[str, str] = field(default_factory=dict)


def questions(enquiry: Enquiry) -> tuple[Question, ...]:
    """Return what to measure, nothing unless *enquiry.bench*; the first folder's disk counts."""
    if not enquiry.bench:
        return ()
    find = f"{LOOK}look {quoted([enquiry.python])}; p=$found\n"
    words = quoted([_PROGRAM, *enquiry.folders[:1]])
    return (Question(NAME, f'{find}"$p" -E -c {words}', slow=True),)


def parse(answers: Answers) -> Speeds:
    """Read the answer; what is missing was not measured."""
    gflops: dict[tuple[str, str], float] = {}
    failed: dict[str, str] = {}
    io_mbps = 0.0
    for tag, rest in tagged(answers.text(NAME)):
        *which, value = rest.split("|")
        if tag == "gflops" and len(which) == 2:  # noqa: PLR2004 - label and ident
            gflops[which[0], which[1]] = _number(value)
        elif tag == "io":
            io_mbps = _number(value)
        elif tag == "failed":
            what, _, why = rest.partition("|")
            failed[what] = _LACKING.sub(r"no \1", why)
    return Speeds(gflops, io_mbps, failed)


def measured(hardware: Hardware, speeds: Speeds) -> Hardware:
    """Return *hardware* with its speeds; the node's own is that of its fastest device."""
    devices = tuple(
        replace(one, gflops=speeds.gflops.get((one.device, one.ident), one.gflops))
        for one in hardware.devices
    )
    fastest = max((one.gflops for one in devices), default=0.0)
    return replace(
        hardware,
        devices=devices,
        gflops=fastest or hardware.gflops,
        io_mbps=speeds.io_mbps or hardware.io_mbps,
        unmeasured=speeds.failed or hardware.unmeasured,
    )


def _number(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0
