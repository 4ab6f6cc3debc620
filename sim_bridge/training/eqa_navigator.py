"""Planner-controller navigator of Das et al. 2018, trained to imitate shortest paths, and the agent that is exported.

The planner, a recurrent network, chooses an action; the controller decides after every frame whether to repeat it, at
most :data:`REPEATS` times, or to return to the planner. Image features come from the frozen encoder of
:mod:`sim_bridge.training.eqa_network`. Smaller than the paper's: 192 units instead of 1024.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sim_bridge.training.eqa_network import CELLS, WIDTH, Answerer, Encoder, QuestionEncoder, pooled
from sim_bridge.training.eqa_views import FRAMES
from sim_bridge.training.eqa_walks import ACTIONS

REPEATS = 5
HIDDEN = 192
_IMAGE, _QUESTION, _ACTION = 128, 64, 32
_MARGIN = 20.0
_NOTHING = len(ACTIONS)
"""Index of the action before the first one."""

_FRAME_NUMBERS = WIDTH * CELLS * CELLS
STATE_NUMBERS = HIDDEN + 1 + FRAMES * _FRAME_NUMBERS
"""The planner's state, the number of repeats, and the features of the last frames."""


class Navigator(nn.Module):
    """Planner and controller."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.image = nn.Sequential(
            nn.Conv2d(WIDTH, 16, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(16 * CELLS * CELLS, _IMAGE),
            nn.ReLU(),
        )
        self.question = QuestionEncoder(words)
        self.action = nn.Embedding(len(ACTIONS) + 1, _ACTION)
        self.planner = nn.GRU(_IMAGE + _QUESTION + _ACTION, HIDDEN, batch_first=True)
        self.choice = nn.Linear(HIDDEN, len(ACTIONS))
        self.controller = nn.Sequential(nn.Linear(HIDDEN + _ACTION + _IMAGE, 128), nn.ReLU(), nn.Linear(128, 1))

    def plan(self, images: Tensor, question: Tensor, before: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logits of actions (B, P, actions), and the planner's states (B, P, HIDDEN).

        Args:
            images: encoded, (B, P, 128).
            question: encoded, (B, 64).
            before: int64 (B, P), the previous actions.
            state: (1, B, HIDDEN); None at the start.
        """
        asked = question[:, None].expand(-1, images.shape[1], -1)
        states, _ = self.planner(torch.cat([images, asked, self.action(before)], 2), state)
        return self.choice(states), states

    def repeats(self, states: Tensor, action: Tensor, images: Tensor) -> Tensor:
        """Logit of repeating the action, for states (..., HIDDEN), actions (...) and images (..., 128)."""
        logit: Tensor = self.controller(torch.cat([states, self.action(action), images], -1))
        return logit[..., 0]


@dataclass(frozen=True, eq=False)
class Walk:
    """A walk for imitation.

    Attributes:
        features: float16 (T, WIDTH, CELLS, CELLS), standardized.
        actions: (T,), the last one ``stop``.
        tokens: tokens of the questions about its object, (Q, WORDS).
    """

    features: NDArray[np.float16]
    actions: NDArray[np.int64]
    tokens: NDArray[np.int64]


def plans(actions: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Steps at which the planner decides, and for each step the number of the plan that its action belongs to."""
    starts, owner = [0], [0]
    for step in range(1, len(actions)):
        if actions[step] != actions[step - 1] or step - starts[-1] == REPEATS:
            starts.append(step)
        owner.append(len(starts) - 1)
    return starts, owner


def train_navigator(walks: Sequence[Walk], held_out: Sequence[Walk], words: int, epochs: int, seed: int) -> Navigator:
    """The navigator, in evaluation mode; prints the share of right plans on held-out walks.

    Every walk begins at a random one of its steps, because agents begin 10 to 50 actions before the end; half of the
    walks are mirrored.
    """
    torch.manual_seed(seed)
    random, navigator = np.random.default_rng(seed), Navigator(words)
    optimizer = torch.optim.AdamW(navigator.parameters(), lr=2e-3, weight_decay=1e-2)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * max(0.05, 1 - epoch / epochs)
        navigator.train()
        order = random.permutation(len(walks))
        for first in range(0, len(order), 24):
            loss, _ = _loss(navigator, [_suffix(walks[i], random) for i in order[first : first + 24]])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(navigator.parameters(), 1.0)
            optimizer.step()
        if epoch % 10 == 9 or epoch == epochs - 1:
            navigator.eval()
            with torch.no_grad():
                loss, right = _loss(navigator, [_suffix(walk, np.random.default_rng(0)) for walk in held_out])
            print(f"navigator {epoch + 1}: held out loss {loss.item():.3f}, plans right {right:.3f}", flush=True)
    return navigator.eval()


def _suffix(walk: Walk, random: np.random.Generator) -> Walk:
    """The walk from a random step on, mirrored or not, with one of its questions."""
    first = int(random.integers(0, max(1, len(walk.actions) - 10)))
    features, actions = walk.features[first:], walk.actions[first:]
    if random.random() < 0.5:
        left, right = ACTIONS.index("turn_left"), ACTIONS.index("turn_right")
        features = features[..., ::-1]
        actions = np.where(actions == left, right, np.where(actions == right, left, actions))
    return Walk(features, actions, walk.tokens[random.integers(len(walk.tokens))][None])


def _loss(navigator: Navigator, walks: Sequence[Walk]) -> tuple[Tensor, float]:
    """Cross-entropy of planner and controller, and the share of right plans."""
    images = navigator.image(torch.tensor(np.concatenate([walk.features for walk in walks]).astype(np.float32)))
    asked = navigator.question(torch.tensor(np.concatenate([walk.tokens for walk in walks])))
    split = [plans(walk.actions) for walk in walks]
    most = max(len(starts) for starts, _ in split)
    at = torch.zeros(len(walks), most, dtype=torch.int64)
    before, wanted = torch.full((len(walks), most), _NOTHING), torch.full((len(walks), most), -100)
    which, plan_of, step_of, same, done = [], [], [], [], []
    offset = 0
    for row, (walk, (starts, owner)) in enumerate(zip(walks, split, strict=True)):
        count, actions = len(starts), torch.tensor(walk.actions)
        at[row, :count] = offset + torch.tensor(starts)
        before[row, 1:count] = actions[torch.tensor(starts[1:], dtype=torch.int64) - 1]
        wanted[row, :count] = actions[torch.tensor(starts)]
        for step in range(1, len(walk.actions)):
            if step - starts[owner[step - 1]] < REPEATS:
                which.append(row)
                plan_of.append(owner[step - 1])
                step_of.append(offset + step)
                done.append(int(walk.actions[step - 1]))
                same.append(float(owner[step] == owner[step - 1]))
        offset += len(walk.actions)
    logits, states = navigator.plan(images[at], asked, before, None)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=-100)
    repeat = navigator.repeats(states[which, plan_of], torch.tensor(done), images[step_of])
    loss = loss + nn.functional.binary_cross_entropy_with_logits(repeat, torch.tensor(same))
    there = wanted >= 0
    return loss, float((logits.argmax(2) == wanted)[there].float().mean())


class Agent(nn.Module):
    """Encoder, navigator and answerer as one recurrent network, a step at a time.

    Encoder and answerer are trained before; mean and standard deviation of the features are (WIDTH,).
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self, encoder: Encoder, navigator: Navigator, answerer: Answerer, mean: Tensor, deviation: Tensor
    ) -> None:
        super().__init__()
        self.encoder, self.navigator, self.answerer = encoder, navigator, answerer
        self.register_buffer("mean", mean.reshape(1, WIDTH, 1, 1))
        self.register_buffer("deviation", deviation.reshape(1, WIDTH, 1, 1))

    def forward(self, rgb: Tensor, question: Tensor, before: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of actions (1, actions), probabilities of answers (1, answers), and the next state.

        Args:
            rgb: uint8 (1, SIDE, SIDE, 3).
            question: int64 (1, WORDS).
            before: int64 (1, 1), the previous action; the number of actions at the start.
            state: float32 (1, STATE_NUMBERS), zeros at the start.
        """
        pixels = rgb.permute(0, 3, 1, 2).float() / 255 - 0.5
        features = (pooled(self.encoder(pixels)) - self.mean) / self.deviation
        planned, count, kept = state[:, :HIDDEN], state[:, HIDDEN : HIDDEN + 1], state[:, HIDDEN + 1 :]
        begins = (before == _NOTHING).float()
        now = features.reshape(1, -1)
        frames = begins * now.repeat(1, FRAMES) + (1 - begins) * torch.cat([kept[:, _FRAME_NUMBERS:], now], 1)
        image, asked = self.navigator.image(features), self.navigator.question(question)
        repeat = (self.navigator.repeats(planned, before[:, 0], image)[:, None] > 0).float()
        repeat = repeat * (count < REPEATS).float() * (1 - begins)
        choice, states = self.navigator.plan(image[:, None], asked, before, planned[None])
        same = torch.nn.functional.one_hot(before[:, 0], _NOTHING + 1)[:, :_NOTHING].float() * _MARGIN
        logits = repeat * same + (1 - repeat) * choice[:, 0]
        answers = self.answerer(question, frames.reshape(1, FRAMES, WIDTH, CELLS, CELLS)).softmax(1)
        planned = repeat * planned + (1 - repeat) * states[:, 0]
        return logits, answers, torch.cat([planned, repeat * count + 1, frames], 1)
