"""Which machine, how to reach it, and where our files lie on it."""

from dataclasses import dataclass

from rlxdeploy.model.names import HostName


@dataclass(frozen=True, slots=True)
class Host:
    """One machine: *name* is what people read; *ssh* is the alias to dial, None the controller."""

    name: HostName
    ssh: str | None = None

    @property
    def is_controller(self) -> bool:
        return self.ssh is None


@dataclass(frozen=True, slots=True)
class Tree:
    """Where one job's files lie on one host; every path is absolute and POSIX.

    *data* is `/var/lib/rlx` or `$XDG_DATA_HOME/rlx`; *run* is `/run/rlx`, `$XDG_RUNTIME_DIR/rlx`
    or, without one, `<data>/<job>/run`; *units* is the unit folder of the launch, empty for
    process launch.
    """

    job: str
    data: str
    run: str
    units: str = ""

    @property
    def home(self) -> str:
        return f"{self.data}/{self.job}"

    @property
    def lock(self) -> str:
        return f"{self.home}/lock"

    @property
    def deployment(self) -> str:
        return f"{self.home}/deployment.json"

    @property
    def key(self) -> str:
        return f"{self.home}/key"

    @property
    def current(self) -> str:
        return f"{self.home}/current"

    @property
    def releases(self) -> str:
        return f"{self.home}/releases"

    @property
    def logs(self) -> str:
        return f"{self.home}/log"

    def release(self, release: str) -> str:
        """Return the folder of *release*."""
        return f"{self.releases}/{release}"

    def stored(self, sha256: str) -> str:
        """Return the path of a content-addressed file that jobs share."""
        return f"{self.data}/store/{sha256}"

    def env_file(self, rank: int) -> str:
        """Return the environment file *rank* starts with, through `current`."""
        return f"{self.current}/env/{rank}.env"

    def process_file(self, rank: int) -> str:
        """Return what the supervisor of *rank* is told to run, through `current`."""
        return f"{self.current}/process/{rank}.json"

    def state_file(self, rank: int) -> str:
        """Return the file in which the node of *rank* says how far it is (RLX_STATE_FILE)."""
        return f"{self.run_home}/{rank}.state"

    def supervisor_file(self, rank: int) -> str:
        """Return the file in which the supervisor of *rank* says what it runs (process launch)."""
        return f"{self.run_home}/{rank}.supervisor"

    def log_file(self, rank: int) -> str:
        """Return the log of *rank* under process launch; units log to the journal."""
        return f"{self.logs}/{rank}.log"

    @property
    def run_home(self) -> str:
        return self.run if self.run.startswith(f"{self.home}/") else f"{self.run}/{self.job}"
