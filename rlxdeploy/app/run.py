"""One run of a command that changes hosts: what each host has come to, in memory and on disk."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from rlxdeploy.edge.journal import Journal, open_journal
from rlxdeploy.edge.record import RecordError
from rlxdeploy.model.plan import Plan

# What a host says of itself, besides the steps that it names as it does them.
MILESTONES = frozenset({"staged", "undone", "told to go", "changed", "confirmed", "reverted"})
_UNCHANGED = frozenset({"planned", "staged", "undone", "reverted"})
_WORDS: Mapping[str, str] = {
    "planned": "as it was",
    "undone": "as it was, what was staged is undone",
    "staged": "as it was, and undoes what is staged",
    "confirmed": "changed",
    "reverted": "gone back",
}


@dataclass(frozen=True, slots=True)
class HostState:
    """What one host has come to: its release ("" none), its ranks, and a sentence."""

    release: str
    ranks: tuple[int, ...]
    state: str


@dataclass(slots=True)
class Run:
    """The run of *verb* over *plan*; *hosts* have the last word of each touched host.

    *by* says who does what, from where.  Until hosts are told to go, what cannot be written down is
    raised as RecordError; hosts that go do not wait for our disk, and then `end` raises it.
    """

    verb: str
    plan: Plan
    inventory: Path
    journal: Journal
    hosts: dict[str, str] = field(default_factory=dict)
    by: str = ""
    _gone: bool = False
    _trouble: RecordError | None = None

    @classmethod
    def begin(cls, verb: str, plan: Plan, inventory: Path, by: str) -> Self:
        """Open the journal beside *inventory* and write down what is to be done."""
        run = cls(verb, plan, inventory, open_journal(inventory, plan.job), by=by)
        run.hosts = {name: "planned" for name, part in plan.hosts.items() if not part.empty}
        run.journal.write(
            "begin", verb=verb, by=by, job=plan.job, release=plan.release, hosts=[*run.hosts]
        )
        return run

    def heard(self, host: str, what: str) -> None:
        """Take down what a host has just done; called from several threads."""
        self.hosts[host] = what
        self._write("host", host=host, did=what)

    def stage(self, stage: str, **told: object) -> None:
        """Take down that the run has come to *stage*."""
        self._write("stage", stage=stage, **told)

    @contextmanager
    def going(self) -> Iterator[None]:
        """Have the disk hold what has been written; in the body hosts are told to go."""
        self.go()
        yield

    def go(self) -> None:
        """Have the disk hold what has been written, before hosts are told to go."""
        self.journal.sync()
        self._gone = True

    def _write(self, event: str, **told: object) -> None:
        try:
            self.journal.write(event, **told)
        except RecordError as error:
            if not self._gone:
                raise
            self._trouble = self._trouble or error

    def end(self, how: str, failed: Collection[str] | None = None) -> None:
        """Take down how the run ended, what each host has come to, and which ones *failed*.

        Where nobody has said which, those are meant that did not come to their end.  Raises
        RecordError where the journal lacks anything of this run.
        """
        states = {name: one.state for name, one in self.states().items()}
        if failed is None:
            failed = [name for name in self.hosts if not self.is_settled(name)]
        self._write("end", how=how, hosts=states, failed=sorted(failed))
        if self._trouble:
            went_on = "the hosts have gone on without it, see `rlxdeploy status`"
            raise RecordError(f"{self._trouble}; {went_on}") from self._trouble
        self.journal.sync()

    @property
    def changed(self) -> bool:
        """Whether any host may be other than it was."""
        return not _UNCHANGED.issuperset(self.hosts.values())

    def is_settled(self, host: str) -> bool:
        """Tell whether the host is as planned, and nothing will take that back."""
        final = "confirmed" if self.plan.hosts[host].back else "changed"
        return self.hosts.get(host, final) == final

    def states(self) -> Mapping[str, HostState]:
        """Return what every touched host has come to, as far as it has said."""
        return {name: self._state(name, word) for name, word in self.hosts.items()}

    def _state(self, name: str, word: str) -> HostState:
        back = self.plan.hosts[name].back
        before = back.release if back else self.plan.release
        ranks = tuple(row.rank for row in self.plan.ranks if row.host == name and row.managed)
        if word in _UNCHANGED:
            return HostState(before, back.again if back else ranks, _WORDS[word])
        if word == "confirmed" or back is None:
            return HostState(self.plan.release, ranks, _WORDS.get(word, f"changed: {word}"))
        alone = f"it will {back} in {back.after_s} s unless its ranks join"
        done = "changed" if word == "changed" else f"changing (last: {word})"
        return HostState(self.plan.release, ranks, f"{done}; {alone}")
