"""The one error of a codec."""

from __future__ import annotations


class UnusableImage(Exception):
    """The image can't be packed; the text is the reason, short enough to be counted by."""
