"""Class ids and the table of their names."""

from __future__ import annotations

from imagenet_ops.errors import DataError


def synset_of_archive(member_name: str) -> str:
    """`n01440764` from `fall11/n01440764.tar`."""
    return member_name.rpartition("/")[2].removesuffix(".tar")


def synset_of_folder(member_name: str) -> tuple[str, str] | None:
    """(synset, name) from `…/n01440764/n01440764_18.JPEG`; None for a member that lies in no folder."""
    folders, _, name = member_name.removeprefix("./").rpartition("/")
    synset = folders.rpartition("/")[2]
    return (synset, name) if synset not in ("", ".", "..") and name else None


def parse_synset_names(text: str, source: str) -> dict[str, str]:
    """The table of `synset<TAB>name` lines; blank lines are passed over. Raises DataError, naming the line."""
    names: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        synset, tab, name = line.partition("\t")
        if not (synset.strip() and tab and name.strip()):
            raise DataError(f"{source}: line {number}: expected synset, tab, name; found {line[:60]!r}")
        names[synset.strip()] = name.strip()
    return names
