"""Vectors of words by skip-gram, for deep graph kernels and struc2vec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from demonet.errors import DemonetError
from demonet.features.graph import Float


def skip_gram(
    method: str, sentences: Sequence[Sequence[str]], words: int, *, width: int, seed: int, **options: Any
) -> Float:
    """``[words, width]`` the vectors of the words "0", "1" and so on, by a hierarchical softmax in one thread.

    Args:
        method: Its name, for the error if gensim is not installed.
        sentences: Each word is in one of them at least.
        words: Number of words.
        width: Of a vector.
        seed: The same seed gives the same vectors; with several threads they would depend on scheduling.
        **options: ``window``, ``epochs`` and others of gensim's ``Word2Vec``.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise DemonetError(f"{method} needs gensim", hint="pip install demonet[paper]") from None
    fixed = {"sg": 1, "hs": 1, "negative": 0, "min_count": 1, "workers": 1}
    model = Word2Vec(sentences, vector_size=width, seed=seed, **fixed, **options)
    found: Float = model.wv[[str(word) for word in range(words)]].astype(np.float64)
    return found
