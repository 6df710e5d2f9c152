"""A host that nobody wrote: `[discover]` found it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Found:
    """*ssh* is what to dial, *by* the key of `[discover]` that led to it.

    *address* is the numeric address at which it answered, "" where only an alias is known; *said*
    is the name under which it announces itself.  *ranks* are those that the last apply gave it.
    """

    ssh: str
    by: str
    address: str = ""
    said: str = ""
    ranks: tuple[int, ...] = ()

    @property
    def how(self) -> str:
        """The word for how it came into the search: nobody finds what a person listed."""
        return "listed" if self.by == "ssh_hosts" else "found"

    def __str__(self) -> str:
        return f"{self.ssh} ({self.said})" if self.said else self.ssh
