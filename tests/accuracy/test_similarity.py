"""How alike embeddings are."""

import numpy as np
import pytest

from pinstripe.accuracy.similarity import similarities
from pinstripe.models import Similarity


@pytest.mark.parametrize("function", ["cosine", "dot", "euclidean", "manhattan"])
def test_as_sentence_transformers_defines_them(function: Similarity) -> None:
    """Each of its similarity functions, pair by pair."""
    st = pytest.importorskip("sentence_transformers.similarity_functions")
    vectors = np.random.default_rng(1).standard_normal((2, 20, 8), dtype=np.float32)
    expected = st.SimilarityFunction.to_similarity_pairwise_fn(function)(*vectors).numpy()
    first, second = vectors

    assert similarities(first, second, function) == pytest.approx(expected, rel=1e-5)
