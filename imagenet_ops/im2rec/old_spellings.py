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
        option, equals, attached = argument.partition("=")
        if option.startswith("--") and (advice := _advise(option, equals or " ", attached if equals else following)):
            return advice
    return None


def _advise(option: str, between: str, value: str) -> str | None:
    name = option.replace("_", "-")
    is_false = value.lower() in _FALSE
    has_value = is_false or value.lower() in _TRUE
    written = f"{option}{between}{value}" if has_value else option
    if name == "--shuffle":
        rest = "write `--no-shuffle`" if is_false else "leave it out"
        return f"`{written}`: since MXNet 1.1 lists are shuffled without it; {rest}"
    if name in _SWITCHES and has_value:
        rest = "leave it out" if is_false else f"write `{name}`"
        return f"`{written}`: since MXNet 1.1 `{name}` takes no value; {rest}"
    if name in _RENAMED or name != option:
        return f"`{option}`: write `{_RENAMED.get(name, name)}`"
    return None
