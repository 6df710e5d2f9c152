"""What a script says to us: lines that begin with its marker, whatever stands between them."""

from rlxdeploy.edge.session import Session

# A profile that prints without end, on one line, must not fill our memory.
_LONGEST_LINE = 1 << 16


class Frames:
    """The lines of one session that begin with *marker*, read one by one."""

    def __init__(self, session: Session, marker: str) -> None:
        self._session = session
        self._marker = marker.encode()
        self._rest = b""

    def next(self, deadline: float) -> tuple[str, str] | None:
        """Return the next line as its first word and the rest, None once the script has ended.

        Raises TimeoutError at *deadline* (of `time.monotonic()`).
        """
        while True:
            line, newline, rest = self._rest.partition(b"\n")
            if newline:
                self._rest = rest
                head, _, said = line.partition(b" ")
                if head == self._marker:
                    word, _, text = said.decode(errors="replace").partition(" ")
                    return word, text.strip()
            elif piece := self._session.read(deadline):
                self._rest = self._rest[-_LONGEST_LINE:] + piece
            else:
                return None
