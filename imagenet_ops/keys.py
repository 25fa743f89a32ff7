"""Every object-store key, in one place.

{dataset}/{stage}/{fingerprint}/
    plan.json            a mapped stage's inputs, settings and parts, written before its parts run
    parts/{name}.json    what one mapped task did
    data/{name}          archives, index parquet, .rec .idx .lst, checkpoints
    manifest.json        written last, only when every write has returned: it means done
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StageKeys:
    """The keys of one stage's output; made from a fingerprint, or from any key inside by `containing`."""

    dataset: str
    stage: str
    fingerprint: str

    @classmethod
    def containing(cls, key: str) -> StageKeys:
        dataset, stage, fingerprint, *_ = key.split("/")
        return cls(dataset, stage, fingerprint)

    @property
    def folder(self) -> str:
        return f"{self.dataset}/{self.stage}/{self.fingerprint}"

    @property
    def manifest(self) -> str:
        return f"{self.folder}/manifest.json"

    @property
    def plan(self) -> str:
        return f"{self.folder}/plan.json"

    def part(self, name: str) -> str:
        return f"{self.folder}/parts/{name}.json"

    def data(self, name: str) -> str:
        return self.inside(f"data/{name}")

    def inside(self, relative_key: str) -> str:
        """The full key of what a manifest in this folder names by a key relative to it."""
        return f"{self.folder}/{relative_key}"


def part_name(part_key: str) -> str:
    """`train_00003` from `…/parts/train_00003.json`."""
    return part_key.rpartition("/")[2].removesuffix(".json")
