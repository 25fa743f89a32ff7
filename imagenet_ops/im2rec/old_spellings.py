"""Command lines for the im2rec.py of MXNet 1.0 and older, where switches took a value: `--list True`.

Source: apache/mxnet pull requests 8880 and 9652, which are in MXNet 1.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_SWITCHES = {"--list", "--recursive", "--pass-through", "--center-crop", "--pack-label"}
_RENAMED = {"--color-mode": "--color", "--num-threads": "--num-thread"}
_TRUE, _FALSE = {"true", "t", "yes", "1"}, {"false", "f", "no", "0"}


def find_old_spelling(arguments: Sequence[str]) -> str | None:
    """What to write instead of the first old spelling in a command line that was refused; None where there is none."""
    for argument, following in pairwise([*arguments, ""]):
        given, equals, value = argument.partition("=")
        name = given.replace("_", "-")
        value = (value if equals else following).lower()
        written = (
            f"`{given}{equals or ' '}{value if equals else following}`" if value in _TRUE | _FALSE else f"`{given}`"
        )
        if name == "--shuffle":
            return f"{written}: since MXNet 1.1 the shuffle needs no option; {_replace_shuffle(value)}"
        if name in _SWITCHES and value in _TRUE | _FALSE:
            return f"{written}: since MXNet 1.1 `{name}` takes no value; {_replace_switch(name, value)}"
        if name.startswith("--") and (name in _RENAMED or name != given):
            return f"`{given}`: write `{_RENAMED.get(name, name)}`"
    return None


def _replace_shuffle(value: str) -> str:
    return "write `--no-shuffle` to go without it" if value in _FALSE else "leave it out"


def _replace_switch(name: str, value: str) -> str:
    return f"leave `{name}` out" if value in _FALSE else f"write `{name}`"
