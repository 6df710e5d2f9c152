"""What rendering needs besides the Resolution, read by the caller: no file is opened here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlxdeploy.model.loaded import Loaded


@dataclass(frozen=True, slots=True)
class Inputs:
    """Bytes and texts from the controller.

    *archive* is the runtime archive.  *templates* are ours and *overrides* the person's, by file
    name; an override takes the place of ours.  *sources* holds the content of `[[job.files]]` by
    `source` as written, *secrets* each secret's value by its `from`: None where nobody has fetched
    them, then `(secret)` stands in their places.  *digest_key* stays the same for a job of one
    inventory; it is needed where a file is a secret, and environment files are digested with it
    where there is one.  *key* is the job's, in 64 hex digits, "" while there is none.
    """

    loaded: Loaded
    archive: bytes
    templates: Mapping[str, str]
    overrides: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, bytes] = field(default_factory=dict)
    secrets: Mapping[str, str] | None = field(default=None, repr=False)
    digest_key: bytes = field(default=b"", repr=False)
    key: str = field(default="", repr=False)

    @property
    def origin(self) -> str:
        """What the rendered files call the inventory: the same however a person names its path."""
        return self.loaded.path.name
