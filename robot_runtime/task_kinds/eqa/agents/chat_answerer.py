"""Answerer behind an HTTP address with OpenAI's chat interface: image and question in, answer and probability out.

A service that is silent, slow or broken costs the answer, never the episode: the agent abstains, and the log says why.
"""

import base64
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import ConfigError, PolicyError
from robot_runtime.policies.remote.http_request import address, json_request, post
from robot_runtime.policies.wrapper import PolicyWrapper
from robot_runtime.policy import Answer, Observation, Policy, World
from robot_runtime.records import EVIDENCE
from robot_runtime.tasks.task import Task

KEY_VARIABLE = "ROBOT_RUNTIME_ANSWERER_KEY"
"""Environment variable with the service's key, which is neither an option nor logged."""

TIME_LIMIT_S = 20.0
_PROMPT = (
    "The image is what a robot sees in a home. Answer the question in one or two lower-case words; count in digits. "
    'Reply with JSON only: {{"answer": "...", "probability": 0.0}}, with the probability that your answer is right.\n'
    "Question: {question}"
)


@dataclass(frozen=True)
class Reply:
    """Result of a request.

    Attributes:
        answer: None if there is none.
        probability: that the service states; 1 where it states none.
        problem: why there is no answer, else empty.
        latency_s: duration of the request.
        usage: tokens and cost, as the service states them.
    """

    answer: str | None
    probability: float
    problem: str
    latency_s: float
    usage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ChatService:
    """The service.

    Attributes:
        url: up to and without ``/chat/completions``, for instance ``http://localhost:8080/v1``.
        model: its name there.
        timeout_s: time limit for a whole request.
    """

    url: str
    model: str = "default"
    timeout_s: float = TIME_LIMIT_S

    def __post_init__(self) -> None:
        address(self.url)
        if not 0 < self.timeout_s < math.inf:
            raise ConfigError(f"the answerer's time limit is {self.timeout_s} s", "give it a positive number")

    def ask(self, question: str, rgb: NDArray[np.uint8]) -> Reply:
        """Ask one question about one image, uint8 (H, W, 3). Never raises for what the service does."""
        timer = Stopwatch()
        done, png = cv2.imencode(".png", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR))
        assert done
        image = "data:image/png;base64," + base64.b64encode(png.tobytes()).decode()
        content = [
            {"type": "text", "text": _PROMPT.format(question=question)},
            {"type": "image_url", "image_url": {"url": image}},
        ]
        chat = {"model": self.model, "temperature": 0, "messages": [{"role": "user", "content": content}]}
        key = os.environ.get(KEY_VARIABLE)
        request = json_request("/chat/completions", chat, **({"Authorization": f"Bearer {key}"} if key else {}))
        server = address(self.url)
        try:
            body = post(server, request, self.timeout_s)
        except PolicyError as error:
            return Reply(None, 0.0, error.message.removeprefix(f"{server.geturl()}: "), timer.elapsed_s())
        return _read(body, timer.elapsed_s())


def _read(body: bytes, latency_s: float) -> Reply:
    """The reply in a response's body."""
    try:
        document = json.loads(body)
        text = document["choices"][0]["message"]["content"]
        said = json.loads(text[text.index("{") : text.rindex("}") + 1])
        answer, probability = str(said["answer"]).strip().lower(), float(said.get("probability", 1.0))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return Reply(None, 0.0, f"sent something that is not an answer: {type(error).__name__}", latency_s)
    stated = document.get("usage")
    usage = {
        key: float(value)
        for key, value in (stated.items() if isinstance(stated, dict) else ())
        if isinstance(value, int | float) and math.isfinite(value)
    }
    if not answer or len(answer) > 100:
        return Reply(None, 0.0, "sent an empty or endless answer", latency_s, usage)
    if not 0 <= probability <= 1:
        return Reply(None, 0.0, f"sent {probability} as a probability", latency_s, usage)
    return Reply(answer, probability, "", latency_s, usage)


class Answered(PolicyWrapper):
    """A policy that navigates, while a service answers from its last image, or abstains below a probability."""

    kinds: ClassVar[tuple[str, ...]] = ("eqa",)

    def __init__(self, inner: Policy, service: ChatService, answer_probability: float = 0.0) -> None:
        super().__init__(inner, f"{inner.name}+answerer")
        self._service, self._least = service, answer_probability
        self._reply: Reply | None = None
        missing = [name for name in ("rgb", "question") if name not in inner.needs]
        self.needs = (*inner.needs, *missing)  # type: ignore[misc]

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._reply = None
        super().reset(task, seed, world)

    @override
    def answer(self, observation: Observation) -> Answer | None:
        self._reply = self._service.ask(str(observation["question"]), observation["rgb"])
        if self._reply.answer is None or self._reply.probability < self._least:
            return None
        return {self._reply.answer: self._reply.probability}

    @override
    def info(self) -> dict[str, Any]:
        if self._reply is None:
            return super().info()
        reply = self._reply
        if reply.answer is None:
            said = f"abstains: the answerer at {self._service.url} {reply.problem}"
        else:
            stops = "abstains: " if reply.probability < self._least else ""
            said = f"{stops}the answerer said {reply.answer!r} with probability {reply.probability:.2f}"
        facts = {"url": self._service.url, "model": self._service.model, "latency_s": round(reply.latency_s, 4)}
        return {**super().info(), "answerer": {**facts, **reply.usage}, EVIDENCE: [said]}


def answered(policy: Policy, url: str, model: str, timeout_s: float) -> Answered:
    """The function of ``robot_runtime.answerers`` for services with OpenAI's chat interface."""
    return Answered(policy, ChatService(url, model, timeout_s))
