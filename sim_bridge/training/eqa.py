"""Training of the question answerers, of the navigator and of the flats' detector.

::

    python -m sim_bridge.training.eqa --out training/eqa

makes flats, views and walks, learns the names of colors from their pixels, counts what stands in which room, trains the
encoder to segment and to reconstruct, freezes it, trains answerers and navigator on its cached features, and exports
them. What exists of flats, views and walks is not made again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor, nn

from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.parallel.map import Workers
from robot_runtime.policies.package.vocabulary import Vocabulary, question_tokens
from robot_runtime.scenes.scene import Scene, load_scene
from robot_runtime.task_kinds.eqa.agents.object_memory import histogram
from robot_runtime.task_kinds.eqa.questions.names import category_name
from robot_runtime.tasks.task import load_task
from sim_bridge.scenes.generate import flats
from sim_bridge.training.eqa_agent import export_network, write_agent
from sim_bridge.training.eqa_navigator import Agent, Walk, train_navigator
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
from sim_bridge.training.eqa_views import FRAMES, SIDE, SIZES, TASK, Views, category_words, write_views
from sim_bridge.training.eqa_walks import BEYOND, Walks, frames_of, write_walks
from sim_bridge.training.jobs import done

_LEAST_PIXELS = 10
_LEAST_SHARE, _LEAST_OBJECTS = 0.002, 3
"""A bin has weights if it holds this share of the pixels of so many objects."""

_UPDATES = 500
_EVEN = 0.5
"""Objects of a category that are counted in addition to those of the flats, of every color alike."""


def write_color_names(views: Sequence[Views], scenes: Sequence[Scene], out: Path, seed: int) -> None:
    """Fit a logistic regression to the objects whose color is asked for, and write all of ``ColorNames``."""
    counts, colors = [], []
    for one in views:
        for frames, semantic, category, asked in zip(one.frames, one.semantic, one.category, one.asked, strict=True):
            pixels = frames[-1][semantic == category]
            color = next((answer for _, answer, kind in asked if kind in ("color", "color_room")), None)
            if color is not None and category >= 0 and len(pixels) >= _LEAST_PIXELS:
                found = histogram(pixels)
                counts.append(found / found.sum())
                colors.append(color)
    shares, names = np.array(counts), sorted(set(colors))
    bins = np.flatnonzero((shares > _LEAST_SHARE).sum(axis=0) >= _LEAST_OBJECTS)
    torch.manual_seed(seed)
    inputs = torch.tensor(np.sqrt(shares[:, bins]), dtype=torch.float32)
    truth = torch.tensor([names.index(color) for color in colors])
    layer = nn.Linear(len(bins), len(names))
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05, weight_decay=1e-4)
    for _ in range(_UPDATES):
        loss = nn.functional.cross_entropy(layer(inputs), truth)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    weights = layer.weight.detach().numpy().T.astype(np.float16)
    bias = layer.bias.detach().numpy()
    categories, priors = _priors(scenes, names)
    np.savez_compressed(
        out,
        names=np.array(names),
        categories=np.array(categories),
        bins=bins.astype(np.uint16),
        weights=weights,
        bias=bias,
        priors=priors,
    )


def _priors(scenes: Sequence[Scene], names: Sequence[str]) -> tuple[list[str], NDArray[np.float16]]:
    words, counts = category_words(), dict[str, Counter[str]]()
    for item in (item for scene in scenes for item in scene.objects if item.color in names):
        counts.setdefault(words.get(item.category, ""), Counter())[str(item.color)] += 1
    categories = sorted(filter(None, counts))
    there = np.array([[counts[category][name] for name in names] for category in categories], np.float64)
    shares = (there + _EVEN / len(names)) / (there.sum(axis=1, keepdims=True) + _EVEN)
    return categories, np.log(shares).astype(np.float16)


_FIRST_SEED = 400_000


def write_room_shares(out: Path, count: int) -> None:
    """Write the share of each category's objects in each kind of room; the flats are planned, but not built."""
    words, counts = category_words(), dict[str, Counter[str]]()
    for seed in range(_FIRST_SEED, _FIRST_SEED + count):
        flat = next(flats(seed, SIZES[seed % len(SIZES)])).file
        rooms = {room.id: category_name(room.category, {}) for room in flat.rooms}
        for item in flat.objects:
            if item.room in rooms and item.category in words:
                counts.setdefault(words[item.category], Counter())[rooms[item.room]] += 1
    shares = {
        name: {room: round(number / found.total(), 2) for room, number in sorted(found.items())}
        for name, found in sorted(counts.items())
    }
    out.write_text(dump_yaml(shares, sort_keys=True, width=116), encoding="utf-8")


FIRST_SEED = 200_000
HELD_OUT = 0.1
"""Share of the flats, the last ones, whose answers are only counted."""

ELSEWHERE = 0.4
"""Share of the questions that are asked again at another end in the flat: agents often end where the object is not in
view, and an answerer that never saw that believes whatever it sees."""

_MIN_SCORE = 0.3


def main(
    out: Annotated[Path, typer.Option(help="Folder for everything: flats, views, networks.")],
    flats: Annotated[int, typer.Option(min=10)] = 144,
    updates: Annotated[int, typer.Option(min=1, help="Of the encoder, with 32 frames each.")] = 8000,
    epochs: Annotated[int, typer.Option(min=1, help="Of the answerers.")] = 14,
    walks: Annotated[int, typer.Option(min=1, help="Epochs of the navigator.")] = 20,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    workers: Annotated[int, typer.Option(min=1)] = 1,
) -> None:
    """Train the navigator, the answerers and the detector of generated flats."""
    torch.set_num_threads(1)
    timer = Stopwatch()
    folders = [out / "flats" / str(FIRST_SEED + index) for index in range(flats)]
    files = [out / f"views-{folder.name}.npz" for folder in folders]
    walked = [out / f"walks-{folder.name}.npz" for folder in folders]
    out.mkdir(parents=True, exist_ok=True)
    for write, made in ((write_views, files), (write_walks, walked)):
        for _ in done(write, list(zip(folders, made, strict=True)), Workers(workers)):
            pass
    views = [Views.read(file) for file in files]
    write_color_names(views, [load_scene(folder) for folder in folders], out / "colors.npz", seed)
    write_room_shares(out / "rooms.yaml", flats)
    data = Data.of(views)
    del views
    print(f"views, walks and colors: {timer.elapsed_s():.0f} s", flush=True)
    encoder, head = train_encoder(data, updates, seed)
    export_detector(encoder, head, out)
    print(f"encoder: {timer.elapsed_s():.0f} s", flush=True)
    features = pooled_features(encoder, data.frames)
    mean, deviation = statistics_of(features)
    data, features, paths, late = with_walks(data, features, encoder, walked, (mean, deviation))
    data = with_questions_elsewhere(data, seed)
    answerers = {}
    for mode in MODES:
        answerers[mode] = train_answerer(data, features, (mean, deviation), mode, epochs, seed)
        export_answerer(encoder, answerers[mode], (mean, deviation), data, out)
        print(f"{mode}: {timer.elapsed_s():.0f} s", flush=True)
    navigator = train_navigator(paths, late, len(data.words), walks, seed)
    agent = Agent(encoder, navigator, answerers["attention"], mean, deviation).eval()
    source = f"python -m sim_bridge.training.eqa --flats {flats} --seed {seed}"
    write_agent(agent, Vocabulary(data.words, data.answers), folders[-1], out / "eqa_navigator", source)
    print(f"navigator: {timer.elapsed_s():.0f} s", flush=True)


@dataclass(frozen=True, eq=False)
class Data:
    """All views, and a row per question about one.

    Attributes:
        frames: (N, FRAMES, SIDE, SIDE, 3).
        semantic: int64 (N, cells, cells), classes of the last frame, the last class is nothing.
        classes: names.
        words: all of the questions, sorted.
        answers: all answers, sorted.
        flat: number of the flat of each view, (N,), and of what :func:`with_walks` adds.
        trained_flats: number of flats, the first ones; nothing is trained on the others.
        view: view index of each row, (M,).
        tokens: tokens of each row's question, (M, WORDS).
        answer: answer index of each row, (M,).
    """

    frames: NDArray[np.uint8]
    semantic: NDArray[np.int64]
    classes: tuple[str, ...]
    words: tuple[str, ...]
    answers: tuple[str, ...]
    flat: NDArray[np.intp]
    trained_flats: int
    view: NDArray[np.intp]
    tokens: NDArray[np.int64]
    answer: NDArray[np.int64]

    @classmethod
    def of(cls, views: Sequence[Views]) -> Data:
        """The data of all flats' views."""
        asked = [questions for one in views for questions in one.asked]
        flat = np.repeat(np.arange(len(views)), [len(one.asked) for one in views])
        rows = [(view, text, answer) for view, questions in enumerate(asked) for text, answer, _ in questions]
        words = tuple(sorted({word for _, text, _ in rows for word in text.lower().replace("?", "").split()}))
        answers = tuple(sorted({answer for _, _, answer in rows}))
        classes = (*load_task(TASK).categories, "")
        semantic = np.concatenate([one.semantic for one in views])[:, PATCH // 2 :: PATCH, PATCH // 2 :: PATCH]
        return cls(
            np.concatenate([one.frames for one in views]),
            np.where(semantic < 0, len(classes) - 1, semantic).astype(np.int64),
            classes,
            words,
            answers,
            flat,
            math.ceil(len(views) * (1 - HELD_OUT)),
            np.array([row[0] for row in rows]),
            np.stack([question_tokens(text, words, WORDS)[0] for _, text, _ in rows]),
            np.array([answers.index(answer) for _, _, answer in rows]),
        )

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Of each row, whether nothing is trained on its flat, (M,)."""
        return self.flat[self.view] >= self.trained_flats

    def with_rows(self, view: NDArray[np.intp], tokens: NDArray[np.int64], answer: NDArray[np.int64]) -> Data:
        """The data with further rows."""
        return replace(
            self,
            view=np.concatenate([self.view, view]),
            tokens=np.concatenate([self.tokens, tokens]),
            answer=np.concatenate([self.answer, answer]),
        )


def pooled_features(encoder: Encoder, frames: NDArray[np.uint8]) -> NDArray[np.float16]:
    """Pooled features of frames (..., SIDE, SIDE, 3): (..., WIDTH, CELLS, CELLS)."""
    flat = frames.reshape(-1, SIDE, SIDE, 3)
    found = np.zeros((len(flat), WIDTH, CELLS, CELLS), np.float16)
    with torch.no_grad():
        for first in range(0, len(flat), 64):
            found[first : first + 64] = pooled(encoder(_pixels(flat[first : first + 64]))).numpy()
    return found.reshape(*frames.shape[:-3], WIDTH, CELLS, CELLS)


def statistics_of(features: NDArray[np.float16]) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each feature, (WIDTH,)."""
    some = torch.tensor(features[::20].astype(np.float32))
    return some.mean((0, 1, 3, 4)), some.std((0, 1, 3, 4)) + 1e-3


def with_walks(
    data: Data, features: NDArray[np.float16], encoder: Encoder, files: Sequence[Path], scale: tuple[Tensor, Tensor]
) -> tuple[Data, NDArray[np.float16], list[Walk], list[Walk]]:
    """The data and features with the last frames of walks, and the walks of trained and of held-out flats.

    Agents do not end where paths do: of every walk there is a view that ends before the object, one that ends beyond
    it, and one that ends on the way.
    """
    random = np.random.default_rng(0)
    mean, deviation = (value.numpy()[:, None, None] for value in scale)
    seen: list[NDArray[np.float16]] = []
    rows, flat = [], []
    paths: tuple[list[Walk], list[Walk]] = ([], [])
    for number, file in enumerate(files):
        walks, late = Walks.read(file), number >= data.trained_flats
        made = pooled_features(encoder, walks.frames)
        for part, actions, asked in zip(frames_of(walks.actions), walks.actions, walks.asked, strict=True):
            own, end = made[part], len(actions)
            asked = [one for one in asked if one[1] in data.answers]
            if not asked:
                continue
            tokens = np.stack([question_tokens(text, data.words, WORDS)[0] for text, _, _ in asked])
            paths[late].append(Walk(((own[:end] - mean) / deviation).astype(np.float16), actions, tokens))
            for stop in (end, end + int(random.integers(2, BEYOND + 1)), int(random.integers(FRAMES, end))):
                rows += [(len(features) + len(seen), text, answer) for text, answer, _ in asked]
                flat.append(number)
                seen.append(own[max(0, stop - FRAMES) : stop])
    kept = np.array([len(one) == FRAMES for one in seen])
    filled = np.stack([one if full else np.repeat(one[-1:], FRAMES, 0) for one, full in zip(seen, kept, strict=True)])
    more = replace(data, flat=np.concatenate([data.flat, flat])).with_rows(
        np.array([row[0] for row in rows]),
        np.stack([question_tokens(row[1], data.words, WORDS)[0] for row in rows]),
        np.array([data.answers.index(row[2]) for row in rows]),
    )
    return more, np.concatenate([features, filled]), *paths


def with_questions_elsewhere(data: Data, seed: int) -> Data:
    """The data with a share of the trained questions, :data:`ELSEWHERE`, asked again at any end in their flat."""
    random = np.random.default_rng(seed)
    trained = np.flatnonzero(~data.held_out)
    again = trained[random.random(len(trained)) < ELSEWHERE]
    ends = [np.flatnonzero(data.flat == number) for number in range(data.trained_flats)]
    elsewhere = [random.choice(ends[number]) for number in data.flat[data.view[again]]]
    return data.with_rows(np.array(elsewhere, np.intp), data.tokens[again], data.answer[again])


def train_encoder(data: Data, updates: int, seed: int) -> tuple[Encoder, nn.Conv2d]:
    """The encoder, in evaluation mode, and its head: classes, then the colors of the cell."""
    torch.manual_seed(seed)
    random, classes = np.random.default_rng(seed), len(data.classes)
    trained = np.flatnonzero(data.flat < data.trained_flats)
    encoder, head = Encoder(), nn.Conv2d(WIDTH, classes + 3, 1)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
    counts = np.bincount(data.semantic.ravel(), minlength=classes)
    weights = torch.tensor(1 / np.sqrt(counts + 200.0), dtype=torch.float32)
    weights = weights / weights.mean()
    for update in range(updates):
        _set_rate(optimizer, 3e-3, update / updates)
        chosen = random.choice(trained, 32)
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


def train_answerer(
    data: Data, features: NDArray[np.float16], scale: tuple[Tensor, Tensor], mode: Mode, epochs: int, seed: int
) -> Answerer:
    """The answerer, in evaluation mode; prints the share of right answers in the held-out flats."""
    torch.manual_seed(seed)
    random, answerer = np.random.default_rng(seed), Answerer(len(data.words), len(data.answers), mode)
    optimizer = torch.optim.AdamW(answerer.parameters(), weight_decay=1e-2)
    rows, rest = np.flatnonzero(~data.held_out), np.flatnonzero(data.held_out)
    for epoch in range(epochs):
        _set_rate(optimizer, 2e-3, epoch / epochs)
        answerer.train()
        random.shuffle(rows)
        for tokens, seen, answer in _batches(data, features, scale, rows, mode):
            mirrored = seen.flip(4) if random.random() < 0.5 else seen
            loss = nn.functional.cross_entropy(answerer(tokens, mirrored), answer, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        answerer.eval()
        with torch.no_grad():
            right = [
                (answerer(tokens, seen).argmax(1) == answer).float()
                for tokens, seen, answer in _batches(data, features, scale, rest, mode)
            ]
        print(f"{mode} {epoch + 1}: held out {torch.cat(right).mean().item():.3f}", flush=True)
    return answerer


def _batches(
    data: Data, features: NDArray[np.float16], scale: tuple[Tensor, Tensor], rows: NDArray[np.intp], mode: Mode
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    mean, deviation = scale
    for first in range(0, len(rows), 128):
        some = rows[first : first + 128]
        seen = features[data.view[some]] if mode == "attention" else features[data.view[some]][:, -1:]
        standard = (torch.tensor(seen.astype(np.float32)) - mean[:, None, None]) / deviation[:, None, None]
        yield torch.tensor(data.tokens[some]), standard, torch.tensor(data.answer[some])


def export_answerer(encoder: Encoder, answerer: Answerer, scale: tuple[Tensor, Tensor], data: Data, out: Path) -> None:
    """Write ``MODE.onnx``, and the vocabularies that all modes share."""
    network = Exported(encoder, answerer, *scale).eval()
    count = FRAMES if answerer.mode == "attention" else 1
    example = (torch.zeros(1, WORDS, dtype=torch.int64), torch.zeros(count, SIDE, SIDE, 3, dtype=torch.uint8))
    export_network(network, example, ("question", "frames"), ("answer",), out / f"{answerer.mode}.onnx")
    words = {"words": list(data.words), "answers": list(data.answers)}
    (out / "vocabulary.yaml").write_text(dump_yaml(words, sort_keys=True, width=116), encoding="utf-8")


def export_detector(encoder: Encoder, head: nn.Conv2d, out: Path) -> None:
    """Write the encoder as a detector (:mod:`robot_runtime.policies.detector`)."""
    classes = list(load_task(TASK).categories)
    network = Segmenter(encoder, head, len(classes) + 1).eval()
    export_network(network, (torch.zeros(1, 3, SIDE, SIDE),), ("image",), ("logits",), out / "detector.onnx")
    description = {
        "model": "detector.onnx",
        "labels": [*classes, ""],
        "width": SIDE,
        "height": SIDE,
        "kind": "masks",
        "outputs": ["logits"],
        "min_score": _MIN_SCORE,
    }
    (out / "detector.yaml").write_text(dump_yaml(description, sort_keys=True, width=116), encoding="utf-8")


def _set_rate(optimizer: torch.optim.Optimizer, highest: float, done_share: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = highest * max(0.03, 1 - done_share)


def _pixels(frames: NDArray[np.uint8]) -> Tensor:
    return torch.tensor(frames.astype(np.float32) / 255 - 0.5).permute(0, 3, 1, 2)


if __name__ == "__main__":
    typer.run(main)
