"""Suggestions for words that nearly fit."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean 'x'?` for the nearest of *known*, or "" if none is near."""
    folded = {name.casefold(): name for name in known}
    nearest = get_close_matches(word.casefold(), folded, n=1, cutoff=0.7)
    return f"did you mean {folded[nearest[0]]!r}?" if nearest else ""
