from __future__ import annotations

import random

from imagenet_ops.records.id_set import IdSet


def test_it_says_the_same_as_a_set() -> None:
    chance = random.Random(3)
    given = [chance.randrange(600) for _ in range(900)] + [chance.getrandbits(64) for _ in range(100)] * 2
    seen: set[int] = set()
    ids = IdSet()
    for record_id in given:
        assert ids.add(record_id) == (record_id not in seen)
        seen.add(record_id)
    assert all(record_id in ids for record_id in seen)
    assert not any(record_id in ids for record_id in range(600) if record_id not in seen)
