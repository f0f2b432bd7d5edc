"""Every faulty store fails a test vector, too; the correct one fails none."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutant import StoreMutant
from registry import STORES
from twin_store import Twin

from peeklock.harness.adapter.wrapping import AdapterError
from peeklock.harness.vectors.replay import read_vectors, replay

VECTORS = read_vectors(Path(__file__).parent.parent.parent / "docs" / "vectors")


@pytest.mark.parametrize("mutant", STORES, ids=lambda m: m.slug)
def test_a_faulty_store_fails_a_vector(mutant: StoreMutant) -> None:
    def fails() -> bool:
        try:
            return any(replay(vector, mutant.make()) for vector in VECTORS)
        except AdapterError:
            # It does not know the token and falls over: no answer is the answer that was expected.
            return True

    assert fails(), mutant.fault


def test_the_correct_store_fails_none() -> None:
    assert [m for vector in VECTORS if (m := replay(vector, Twin()))] == []
