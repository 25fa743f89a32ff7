"""Record ids seen so far, in a bit each where they lie close together, as those of a dataset do."""

from __future__ import annotations

_IDS_A_PAGE = 256


class IdSet:
    """Whole numbers of any size: 14 million ids without gaps take 10 MB, scattered ones some 150 bytes each."""

    def __init__(self) -> None:
        self._pages: dict[int, int] = {}

    def add(self, record_id: int) -> bool:
        """Whether the id is new."""
        if record_id in self:
            return False
        page, bit = divmod(record_id, _IDS_A_PAGE)
        self._pages[page] = self._pages.get(page, 0) | 1 << bit
        return True

    def __contains__(self, record_id: int) -> bool:
        page, bit = divmod(record_id, _IDS_A_PAGE)
        return bool(self._pages.get(page, 0) >> bit & 1)
