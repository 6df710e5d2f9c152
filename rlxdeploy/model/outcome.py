"""One machine's failure is a value, shown with the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from rlxdeploy.errors import HostError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[T]):
    """Answers from the hosts that answered, reasons from those that did not."""

    done: Mapping[str, T]
    failed: Mapping[str, HostError]

    def required(self) -> Mapping[str, T]:
        """Return the answers, or raise every failure together as an ExceptionGroup."""
        if self.failed:
            count = f"{len(self.failed)} of {len(self.failed) + len(self.done)} hosts failed"
            raise ExceptionGroup(count, list(self.failed.values()))
        return self.done
