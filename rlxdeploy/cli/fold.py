"""Lines for a terminal: broken between words, and what follows stands further in."""

import textwrap

HANG = "    "

# Text that was quoted, a diff or a log, is shown as it is.
QUOTED = " " * 6


def folded(text: str, width: int | None) -> list[str]:
    """Return *text* in lines of *width* columns where words allow it; one line without *width*."""
    if width is None or len(text) <= width or text.startswith(QUOTED):
        return [text]
    indent = text[: len(text) - len(text.lstrip())]
    if max(map(len, text.split())) > width - len(indent + HANG):
        # A path that fits on no line is easier to copy where the terminal breaks it.
        return [text]
    return textwrap.wrap(
        text,
        width,
        subsequent_indent=indent + HANG,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
