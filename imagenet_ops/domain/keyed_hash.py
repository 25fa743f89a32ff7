"""A fixed pseudo-random number for each image: the same on every machine, in every order, whatever else is there."""

from __future__ import annotations

import hashlib


def keyed_hash(seed: int, purpose: str, synset: str, name: str) -> int:
    """64 bits; `purpose` (at most 16 ASCII letters) keeps the sample and the order independent of each other."""
    digest = hashlib.blake2b(
        f"{synset}/{name}".encode(),
        digest_size=8,
        key=seed.to_bytes(8, "little"),
        person=purpose.encode(),
    )
    return int.from_bytes(digest.digest(), "big")
