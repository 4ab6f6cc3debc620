"""Words of questions and answers, as networks number them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config


@dataclass(frozen=True)
class Vocabulary(config.Strict):
    """Words of questions and answers, in the order of the network's indices; words begin with 1."""

    words: tuple[str, ...]
    answers: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.words)) < len(self.words) or len(set(self.answers)) < len(self.answers):
            raise ValueError("a vocabulary has every word and every answer once")


def question_tokens(text: str, words: Sequence[str], length: int) -> NDArray[np.int64]:
    """The known words of a question as their indices plus 1, int64 (1, length), then zeros."""
    index = {word: number + 1 for number, word in enumerate(words)}
    known = [index[word] for word in text.lower().replace("?", " ").split() if word in index][:length]
    return np.array([known + [0] * (length - len(known))], np.int64)
