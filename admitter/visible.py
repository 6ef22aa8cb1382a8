"""Texts that others have written, as a terminal may show them.

Names and messages of objects come from any user that may write an object, or a file. A terminal obeys control
characters: they could hide a line, colour it, or write another one over it.
"""

import re
from typing import Final

_OBEYED: Final = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
"""Control characters, those that turn the direction of writing or end a line, and halves of characters."""

_IN_A_LINE: Final = re.compile(f"[{_OBEYED}]")
_IN_LINES: Final = re.compile(f"(?!\n)[{_OBEYED}]")


def visible(text: object, *, lines: bool = False) -> str:
    r"""A text in which what a terminal would obey is written out, such as `\x1b`.

    Args:
        text: whatever is to be shown.
        lines: whether it may have several lines.
    """
    return (_IN_LINES if lines else _IN_A_LINE).sub(_written_out, str(text))


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
