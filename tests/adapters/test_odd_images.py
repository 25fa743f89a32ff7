"""Odd images of every kind: the document tells what the code does."""

from __future__ import annotations

from tests.odd_images_table import DOCUMENT, build_document


def test_the_document_tells_what_becomes_of_odd_images() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == build_document()
