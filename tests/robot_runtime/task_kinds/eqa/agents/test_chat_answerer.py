"""An answerer elsewhere: a local server that answers, and the ways in which one can misbehave."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.errors import ConfigError, PolicyMismatch
from robot_runtime.policies.answerers import answered
from robot_runtime.policies.baselines.blind import RandomActions
from robot_runtime.policies.stepping import decide
from robot_runtime.records import ANSWER, EVIDENCE
from robot_runtime.task_kinds.eqa.agents.chat_answerer import KEY_VARIABLE, Answered, ChatService, _read
from robot_runtime.tasks.task import load_task

RGB = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
TASK = load_task("eqa_embodied")


def said(content: str, **more: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}], **more}).encode()


GOOD = said(
    '```json\n{"answer": "Red ", "probability": 0.75}\n```', usage={"prompt_tokens": 90, "cost": 0.002, "x": {}}
)
BODIES = {
    "good": GOOD,
    "words": said("It is red."),
    "empty": said('{"answer": "", "probability": 0.5}'),
    "certain": said('{"answer": "red", "probability": 7}'),
    "nan": said('{"answer": "red", "probability": NaN}'),
    "nothing": b"",
    "list": b"[]",
    "bytes": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
    "huge": said("x" * (1 << 20)),
}


class Service(BaseHTTPRequestHandler):
    """Misbehaves as its path says."""

    requests: list[tuple[str | None, dict[str, Any]]]
    ended: threading.Event

    def do_POST(self) -> None:
        mode = self.path.split("/")[1]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.headers["Authorization"], body))
        if mode == "silent":
            self.ended.wait(10)
        elif mode == "closed":
            self.connection.close()
        elif mode == "broken":
            self.send_error(500)
        elif mode == "drip":
            self.send_response(200)
            self.end_headers()
            while not self.ended.wait(0.05):
                self.wfile.write(b" ")
                self.wfile.flush()
        else:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(BODIES[mode])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[str]:
    class Own(Service):
        requests, ended = [], threading.Event()

    class Server(ThreadingHTTPServer):
        handler = Own

        def handle_error(self, *_: object) -> None:  # a client that has left
            pass

    with Server(("127.0.0.1", 0), Own) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        service_url = f"http://127.0.0.1:{server.server_address[1]}"
        Service.requests = Own.requests
        yield service_url
        Own.ended.set()
        server.shutdown()
        thread.join()


def test_image_and_question_go_out_and_the_answer_comes_back(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "secret")
    reply = ChatService(f"{service}/good/", "some-model").ask("What color is the sofa?", RGB)
    assert (reply.answer, reply.probability, reply.problem) == ("red", 0.75, "")
    assert reply.usage == {"prompt_tokens": 90, "cost": 0.002}
    ((key, request),) = Service.requests
    assert key == "Bearer secret"
    assert request["model"] == "some-model"
    text, image = request["messages"][0]["content"]
    assert text["text"].endswith("Question: What color is the sofa?")
    png = base64.b64decode(image["image_url"]["url"].removeprefix("data:image/png;base64,"))
    shown = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    np.testing.assert_array_equal(cv2.cvtColor(shown, cv2.COLOR_BGR2RGB), RGB)


@pytest.mark.parametrize("mode", [*sorted(set(BODIES) - {"good"}), "closed", "broken"])
def test_nonsense_is_no_answer(service: str, mode: str) -> None:
    reply = ChatService(f"{service}/{mode}", timeout_s=10).ask("Why?", RGB)
    assert reply.answer is None
    assert reply.problem


@pytest.mark.parametrize("mode", ["silent", "drip"])
def test_silence_ends_at_the_time_limit(service: str, mode: str) -> None:
    began = time.monotonic()
    reply = ChatService(f"{service}/{mode}", timeout_s=0.3).ask("Why?", RGB)
    assert time.monotonic() - began < 5
    assert (reply.answer, reply.problem) == (None, "gave no answer within 0.3 s")


def test_nobody_there(service: str) -> None:
    reply = ChatService("http://127.0.0.1:9/v1").ask("Why?", RGB)
    assert reply.problem.startswith("cannot be reached")


@pytest.mark.parametrize(
    ("mode", "answer", "sentence"),
    [
        ("good", {"red": 0.75}, "the answerer said 'red' with probability 0.75"),
        ("broken", None, "refused with HTTP status 500"),
    ],
)
def test_the_step_holds_answer_latency_and_reason(service: str, mode: str, answer: object, sentence: str) -> None:
    policy = Answered(RandomActions(), ChatService(f"{service}/{mode}"))
    policy.reset(TASK, 0)
    observation = {"rgb": RGB, "question": np.array("What color is the sofa?")}
    _, before = decide(policy, observation, 1, TASK)
    assert ANSWER not in before
    action, info = decide(policy, observation, TASK.max_steps, TASK)
    assert action is not Action.STOP
    assert info[ANSWER] == answer
    assert sentence in info[EVIDENCE][0]
    assert info["answerer"]["latency_s"] >= 0
    json.dumps(info)


def test_what_cannot_work_is_refused_before_the_robot_moves() -> None:
    with raises_naming(ConfigError, "ftp://there"):
        ChatService("ftp://there")
    with raises_naming(ConfigError, "time limit"):
        ChatService("http://there", timeout_s=0)
    with raises_naming(PolicyMismatch, "+answerer", "kind eqa"):
        Answered(RandomActions(), ChatService("http://there")).check(load_task("pointnav_gps_compass"))


def test_the_scheme_of_the_address_says_which_service() -> None:
    assert answered(RandomActions(), "http://there", "default", 1.0).name == "random-actions+answerer"
    with raises_naming(ConfigError, "localhost:8080"):
        answered(RandomActions(), "localhost:8080", "default", 1.0)
    with raises_naming(ConfigError, "gopher"):
        answered(RandomActions(), "gopher://there", "default", 1.0)


@given(st.binary(max_size=300) | st.builds(lambda text: said(text), st.text(max_size=80)))
def test_no_body_raises(body: bytes) -> None:
    reply = _read(body, 0.1)
    assert (reply.answer is None) == bool(reply.problem)
