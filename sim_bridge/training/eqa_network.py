"""Networks of learned question answering: an encoder of frames, and an answerer that attends to their cells.

After Das et al. 2018: a frozen encoder, trained to segment and to reconstruct, and an answerer that attends to the last
five frames. Two differences: patches of 8 x 8 pixels replace the first convolutions, five times as fast on a CPU, and
attention chooses among the cells of all frames, not among complete frames.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from sim_bridge.training.eqa_views import FRAMES, SIDE

PATCH = 8
WIDTH = 48
CELLS = 7
WORDS = 16
"""Longest question."""

_SIZE = 64

Mode = Literal["blind", "last", "attention"]
MODES: tuple[Mode, ...] = ("blind", "last", "attention")


class Encoder(nn.Module):
    """Frames (B, 3, SIDE, SIDE) in -0.5..0.5 to features (B, WIDTH, SIDE / PATCH, SIDE / PATCH)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, WIDTH, PATCH, PATCH), nn.BatchNorm2d(WIDTH), nn.ReLU())
        self.blocks = nn.ModuleList(_block(dilation) for dilation in (1, 2, 2))

    def forward(self, frames: Tensor) -> Tensor:
        """The features."""
        features: Tensor = self.stem(frames)
        for block in self.blocks:
            features = features + block(features)
        return features


class QuestionEncoder(nn.Module):
    """Questions (B, WORDS) as vectors (B, 64).

    Args:
        words: number of known words; 0 is none.
    """

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words + 1, _SIZE, padding_idx=0)
        self.order = nn.LSTM(_SIZE, _SIZE, batch_first=True)
        self.meaning = nn.Sequential(nn.Linear(2 * _SIZE, _SIZE), nn.Tanh())

    def forward(self, question: Tensor) -> Tensor:
        """The vectors of questions, int64 (B, WORDS), then zeros."""
        embedded = self.words(question)
        there = (question > 0).float()
        count = there.sum(1, keepdim=True).clamp(min=1)
        ordered, _ = self.order(embedded)
        ends = torch.nn.functional.one_hot(count[:, 0].long() - 1, WORDS).float()
        last = (ordered * ends[..., None]).sum(1)
        mean = (embedded * there[..., None]).sum(1) / count
        asked: Tensor = self.meaning(torch.cat([mean, last], 1))
        return asked


class Answerer(nn.Module):
    """Scores of all answers from a question and the features of frames.

    Args:
        words: number of known words; 0 is none.
        answers: number of answers.
        mode: ``blind`` sees no frame, ``last`` the last one, ``attention`` the last :data:`FRAMES`.
    """

    def __init__(self, words: int, answers: int, mode: Mode) -> None:
        super().__init__()
        self.mode = mode
        self.question = QuestionEncoder(words)
        self.key = nn.Conv2d(WIDTH, _SIZE, 1)
        self.place = nn.Parameter(torch.zeros(1, _SIZE, CELLS, CELLS))
        self.age = nn.Parameter(torch.zeros(FRAMES))
        self.score = nn.Linear(_SIZE, 1)
        self.attended = nn.Linear(WIDTH, _SIZE)
        self.whole = nn.Linear(WIDTH, _SIZE)
        self.answer = nn.Sequential(
            nn.Linear(4 * _SIZE, 2 * _SIZE), nn.ReLU(), nn.Dropout(0.3), nn.Linear(2 * _SIZE, answers)
        )

    def forward(self, question: Tensor, features: Tensor) -> Tensor:
        """Logits (B, answers).

        Args:
            question: int64 (B, WORDS), then zeros.
            features: standardized, (B, frames, WIDTH, CELLS, CELLS).
        """
        asked = self.question(question)
        if self.mode == "blind":
            nothing = torch.zeros_like(asked)
            return self._scores(asked, nothing, nothing, nothing)
        batch, frames = features.shape[0], features.shape[1]
        keys = (self.key(features.flatten(0, 1)) + self.place).reshape(batch, frames, _SIZE, CELLS * CELLS)
        fit = self.score(torch.tanh(keys + asked[:, None, :, None]).transpose(2, 3))[..., 0] * 4
        weights = (fit + self.age[-frames:][None, :, None]).flatten(1).softmax(1)
        cells = features.flatten(3).transpose(2, 3).flatten(1, 2)
        attended = self.attended((cells * weights[..., None]).sum(1))
        return self._scores(asked, attended * asked, attended, self.whole(cells.mean(1)) * asked)

    def _scores(self, *parts: Tensor) -> Tensor:
        scores: Tensor = self.answer(torch.cat(parts, 1))
        return scores


class Exported(nn.Module):
    """Encoder and answerer in one network, from pixels to probabilities.

    The encoder is frozen; mean and standard deviation of the features are (WIDTH,).
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, encoder: Encoder, answerer: Answerer, mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        self.encoder, self.answerer = encoder, answerer
        self.register_buffer("mean", mean.reshape(1, WIDTH, 1, 1))
        self.register_buffer("deviation", deviation.reshape(1, WIDTH, 1, 1))

    def forward(self, question: Tensor, frames: Tensor) -> Tensor:
        """Probabilities (1, answers).

        Args:
            question: int64 (1, WORDS).
            frames: uint8 (N, SIDE, SIDE, 3), the last one last.
        """
        if self.answerer.mode == "blind":
            features = frames.float().mean() * 0 + torch.zeros(1, 1, WIDTH, CELLS, CELLS)
        else:
            pixels = frames.permute(0, 3, 1, 2).float() / 255 - 0.5
            features = ((pooled(self.encoder(pixels)) - self.mean) / self.deviation)[None]
        scores: Tensor = self.answerer(question, features)
        return scores.softmax(1)


class Segmenter(nn.Module):
    """Encoder and head as a detector of masks: images (1, 3, SIDE, SIDE) in 0..1 to logits (1, classes, 14, 14)."""

    def __init__(self, encoder: Encoder, head: nn.Conv2d, classes: int) -> None:
        super().__init__()
        self.encoder, self.head, self.classes = encoder, head, classes

    def forward(self, image: Tensor) -> Tensor:
        """The logits."""
        logits: Tensor = self.head(self.encoder(image - 0.5))
        return logits[:, : self.classes]


def pooled(features: Tensor) -> Tensor:
    """Features averaged to :data:`CELLS` cells a side."""
    return nn.functional.avg_pool2d(features, SIDE // PATCH // CELLS)


def _block(dilation: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(WIDTH, WIDTH, 3, padding=dilation, dilation=dilation), nn.BatchNorm2d(WIDTH), nn.ReLU()
    )
