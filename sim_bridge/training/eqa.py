"""Training of the question answerers and of the flats' detector.

::

    python -m sim_bridge.training.eqa --out training/eqa

makes flats and views, learns the names of colors from their pixels, trains the encoder to segment and to reconstruct,
freezes it, trains the answerers on its cached features, and exports them. Views that exist are not made again. About 40
minutes on one core, half of it flats.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
import yaml
from numpy.typing import NDArray
from torch import Tensor, nn

from robot_runtime.common.clock import Stopwatch
from robot_runtime.parallel.map import Workers
from robot_runtime.policies.eqa.attention import question_tokens
from robot_runtime.tasks.task import load_task
from sim_bridge.training.eqa_colors import write_color_names
from sim_bridge.training.eqa_network import (
    CELLS,
    MODES,
    PATCH,
    WIDTH,
    WORDS,
    Answerer,
    Encoder,
    Exported,
    Mode,
    Segmenter,
    pooled,
)
from sim_bridge.training.eqa_views import FRAMES, SIDE, TASK, Views, write_views
from sim_bridge.training.jobs import done

FIRST_SEED = 200_000
HELD_OUT = 0.1
"""Share of the flats, the last ones, whose answers are only counted."""

_OPSET = 17
_MIN_SCORE = 0.3


def main(
    out: Annotated[Path, typer.Option(help="Folder for everything: flats, views, networks.")],
    flats: Annotated[int, typer.Option(min=10)] = 68,
    updates: Annotated[int, typer.Option(min=1, help="Of the encoder, with 32 frames each.")] = 1350,
    epochs: Annotated[int, typer.Option(min=1, help="Of the answerers.")] = 14,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    workers: Annotated[int, typer.Option(min=1)] = 1,
) -> None:
    """Train the answerers and the detector of generated flats."""
    torch.set_num_threads(1)
    timer = Stopwatch()
    folders = [out / "flats" / str(FIRST_SEED + index) for index in range(flats)]
    files = [out / f"views-{folder.name}.npz" for folder in folders]
    out.mkdir(parents=True, exist_ok=True)
    for _ in done(write_views, list(zip(folders, files, strict=True)), Workers(workers)):
        pass
    write_color_names([Views.read(file) for file in files], out / "colors.npz", seed)
    print(f"views and colors: {timer.elapsed_s():.0f} s", flush=True)
    data = Data.read(files)
    encoder, head = train_encoder(data, updates, seed)
    export_detector(encoder, head, out)
    print(f"encoder: {timer.elapsed_s():.0f} s", flush=True)
    features = data.features(encoder)
    for mode in MODES:
        answerer = train_answerer(data, features, mode, epochs, seed)
        export_answerer(encoder, answerer, features, data, out)
        print(f"{mode}: {timer.elapsed_s():.0f} s", flush=True)


@dataclass(frozen=True, eq=False)
class Data:
    """All views, and a row per question about one.

    Attributes:
        frames: (N, FRAMES, SIDE, SIDE, 3).
        semantic: int64 (N, cells, cells), classes of the last frame, the last class is nothing.
        classes: names.
        words: all of the questions, sorted.
        answers: likewise.
        view: of each row, (M,).
        tokens: of each row's question, (M, WORDS).
        answer: of each row, (M,).
        held_out: of each row, whether its flat is one of those that nothing is trained on.
        trained_views: indices of the others' views.
    """

    frames: NDArray[np.uint8]
    semantic: NDArray[np.int64]
    classes: tuple[str, ...]
    words: tuple[str, ...]
    answers: tuple[str, ...]
    view: NDArray[np.intp]
    tokens: NDArray[np.int64]
    answer: NDArray[np.int64]
    held_out: NDArray[np.bool_]
    trained_views: NDArray[np.intp]

    @classmethod
    def read(cls, files: list[Path]) -> Data:
        """The data of all files."""
        views = [Views.read(file) for file in files]
        asked = [questions for one in views for questions in one.asked]
        flat = np.repeat(np.arange(len(views)), [len(one.asked) for one in views])
        rows = [(view, text, answer) for view, questions in enumerate(asked) for text, answer, _ in questions]
        words = tuple(sorted({word for _, text, _ in rows for word in text.lower().replace("?", "").split()}))
        answers = tuple(sorted({answer for _, _, answer in rows}))
        classes = (*load_task(TASK).categories, "")
        semantic = np.concatenate([one.semantic for one in views])[:, PATCH // 2 :: PATCH, PATCH // 2 :: PATCH]
        view = np.array([row[0] for row in rows])
        late = flat >= len(views) * (1 - HELD_OUT)
        return cls(
            np.concatenate([one.frames for one in views]),
            np.where(semantic < 0, len(classes) - 1, semantic).astype(np.int64),
            classes,
            words,
            answers,
            view,
            np.stack([question_tokens(text, words, WORDS)[0] for _, text, _ in rows]),
            np.array([answers.index(answer) for _, _, answer in rows]),
            late[view],
            np.flatnonzero(~late),
        )

    def features(self, encoder: Encoder) -> NDArray[np.float16]:
        """Pooled features of all frames, (N, FRAMES, WIDTH, CELLS, CELLS)."""
        found = np.zeros((len(self.frames), FRAMES, WIDTH, CELLS, CELLS), np.float16)
        with torch.no_grad():
            for first in range(0, len(found), 16):
                some = self.frames[first : first + 16]
                made = pooled(encoder(_pixels(some.reshape(-1, SIDE, SIDE, 3))))
                found[first : first + 16] = made.numpy().reshape(len(some), *found.shape[1:])
        return found


def train_encoder(data: Data, updates: int, seed: int) -> tuple[Encoder, nn.Conv2d]:
    """The encoder, in evaluation mode, and its head: classes, then the colors of the cell."""
    torch.manual_seed(seed)
    random, classes = np.random.default_rng(seed), len(data.classes)
    encoder, head = Encoder(), nn.Conv2d(WIDTH, classes + 3, 1)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
    counts = np.bincount(data.semantic.ravel(), minlength=classes)
    weights = torch.tensor(1 / np.sqrt(counts + 200.0), dtype=torch.float32)
    weights = weights / weights.mean()
    for update in range(updates):
        _set_rate(optimizer, 3e-3, update / updates)
        chosen = random.choice(data.trained_views, 32)
        pixels, classes_there = _pixels(data.frames[chosen, -1]), torch.tensor(data.semantic[chosen])
        if random.random() < 0.5:
            pixels, classes_there = pixels.flip(3), classes_there.flip(2)
        made = head(encoder(pixels))
        loss = nn.functional.cross_entropy(made[:, :classes], classes_there, weight=weights)
        loss = loss + 5 * nn.functional.mse_loss(made[:, classes:], nn.functional.avg_pool2d(pixels, PATCH))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if update % 100 == 99:
            print(f"encoder {update + 1}: loss {loss.item():.3f}", flush=True)
    return encoder.eval(), head


def train_answerer(data: Data, features: NDArray[np.float16], mode: Mode, epochs: int, seed: int) -> Answerer:
    """The answerer, in evaluation mode; prints the share of right answers in the held-out flats."""
    torch.manual_seed(seed)
    random, answerer = np.random.default_rng(seed), Answerer(len(data.words), len(data.answers), mode)
    optimizer = torch.optim.AdamW(answerer.parameters(), weight_decay=1e-2)
    rows, rest = np.flatnonzero(~data.held_out), np.flatnonzero(data.held_out)
    for epoch in range(epochs):
        _set_rate(optimizer, 2e-3, epoch / epochs)
        answerer.train()
        random.shuffle(rows)
        for tokens, seen, answer in _batches(data, features, rows, mode):
            mirrored = seen.flip(4) if random.random() < 0.5 else seen
            loss = nn.functional.cross_entropy(answerer(tokens, mirrored), answer, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        answerer.eval()
        with torch.no_grad():
            right = [
                (answerer(tokens, seen).argmax(1) == answer).float()
                for tokens, seen, answer in _batches(data, features, rest, mode)
            ]
        print(f"{mode} {epoch + 1}: held out {torch.cat(right).mean().item():.3f}", flush=True)
    return answerer


def _batches(
    data: Data, features: NDArray[np.float16], rows: NDArray[np.intp], mode: Mode
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    mean, deviation = _statistics(features)
    for first in range(0, len(rows), 128):
        some = rows[first : first + 128]
        seen = features[data.view[some]] if mode == "attention" else features[data.view[some]][:, -1:]
        standard = (torch.tensor(seen.astype(np.float32)) - mean[:, None, None]) / deviation[:, None, None]
        yield torch.tensor(data.tokens[some]), standard, torch.tensor(data.answer[some])


def _statistics(features: NDArray[np.float16]) -> tuple[Tensor, Tensor]:
    some = torch.tensor(features[::20].astype(np.float32))
    return some.mean((0, 1, 3, 4)), some.std((0, 1, 3, 4)) + 1e-3


def export_answerer(encoder: Encoder, answerer: Answerer, features: NDArray[np.float16], data: Data, out: Path) -> None:
    """Write ``MODE.onnx``, and the vocabularies, which all modes share."""
    network = Exported(encoder, answerer, *_statistics(features)).eval()
    count = FRAMES if answerer.mode == "attention" else 1
    example = (torch.zeros(1, WORDS, dtype=torch.int64), torch.zeros(count, SIDE, SIDE, 3, dtype=torch.uint8))
    _export(network, example, ("question", "frames"), "answer", out / f"{answerer.mode}.onnx")
    words = {"words": list(data.words), "answers": list(data.answers)}
    (out / "vocabulary.yaml").write_text(yaml.safe_dump(words, width=116), encoding="utf-8")


def export_detector(encoder: Encoder, head: nn.Conv2d, out: Path) -> None:
    """Write the encoder as a detector (:mod:`robot_runtime.policies.detector`)."""
    classes = list(load_task(TASK).categories)
    network = Segmenter(encoder, head, len(classes) + 1).eval()
    _export(network, (torch.zeros(1, 3, SIDE, SIDE),), ("image",), "logits", out / "detector.onnx")
    description = {
        "model": "detector.onnx",
        "labels": [*classes, ""],
        "width": SIDE,
        "height": SIDE,
        "kind": "masks",
        "outputs": ["logits"],
        "min_score": _MIN_SCORE,
    }
    (out / "detector.yaml").write_text(yaml.safe_dump(description, width=116), encoding="utf-8")


def _export(network: nn.Module, example: tuple[Tensor, ...], inputs: tuple[str, ...], output: str, file: Path) -> None:
    with warnings.catch_warnings():
        # The older exporter: torch's present one takes ten times as long and writes an LSTM as many operators.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            example,
            str(file),
            dynamo=False,
            opset_version=_OPSET,
            input_names=list(inputs),
            output_names=[output],
        )


def _set_rate(optimizer: torch.optim.Optimizer, highest: float, done_share: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = highest * max(0.03, 1 - done_share)


def _pixels(frames: NDArray[np.uint8]) -> Tensor:
    return torch.tensor(frames.astype(np.float32) / 255 - 0.5).permute(0, 3, 1, 2)


if __name__ == "__main__":
    typer.run(main)
