"""ONNX networks in ONNX Runtime, the default format: half the time and a third of the memory of eager PyTorch."""

import ctypes
import os
from collections.abc import Mapping
from contextlib import suppress

import numpy as np

# Since 1.29 it reports names and digests of networks to its makers: a robot reports nothing unless its owner says so.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime as ort

from robot_runtime.errors import PackageError, PolicyError
from robot_runtime.policies.package.formats.network import Array, Execution, Network, check_runtime, no_cuda
from robot_runtime.policies.package.formats.onnx_file import read_onnx
from robot_runtime.policies.package.manifest import Manifest, Tensor

DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
}
_ERRORS_ONLY = 3


def open_onnx(
    manifest: Manifest, data: bytes, execution: Execution, weights: Mapping[str, bytes] | None = None
) -> Network:
    """Open an ONNX file; see :func:`robot_runtime.policies.package.formats.network.open_network`."""
    check_runtime("onnxruntime", ort.__version__, manifest.model.minimum_runtime)
    _check_file(manifest, data)
    cuda = "CUDAExecutionProvider" in ort.get_available_providers()
    if execution.device == "cuda" and not cuda:
        raise no_cuda("onnxruntime")
    on_gpu = cuda and execution.device != "cpu"
    try:
        session = open_session(data, execution.threads, on_gpu, weights)
    except Exception as error:  # its own classes derive from Exception, one for each way to fail
        if "IR version" in str(error) or "opset" in str(error):
            raise PackageError(
                f"{manifest.model.file}: is of a newer ONNX than ONNX Runtime {ort.__version__} reads: {error}",
                "pip install -U onnxruntime, or export it with a lower opset and IR version",
            ) from error
        raise PackageError(
            f"{manifest.model.file}: ONNX Runtime {ort.__version__} does not take it: {error}",
            "check that the file is complete and uses operators of the declared opset",
        ) from error
    device = "CUDA" if "CUDAExecutionProvider" in session.get_providers() else "CPU"
    network = _OnnxNetwork(session, f"onnxruntime {ort.__version__}, {device}, threads {execution.threads}")
    _check_tensors(manifest, session)
    return network


def open_session(
    network: str | bytes, threads: int = 1, on_gpu: bool = False, weights: Mapping[str, bytes] | None = None
) -> ort.InferenceSession:
    """Open a network that runs the same way every time and leaves the other cores to the robot's drivers.

    Raises:
        Exception: ONNX Runtime cannot read it. Its own classes derive from that, one for each way to fail.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    options.log_severity_level = _ERRORS_ONLY
    # A thread that spins while it waits takes the core from the robot's drivers.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if weights:
        sizes = [len(content) for content in weights.values()]
        options.add_external_initializers_from_files_in_memory(list(weights), list(weights.values()), sizes)
    providers: list[str | tuple[str, dict[str, str]]] = ["CPUExecutionProvider"]
    if on_gpu:
        # TensorFloat-32 rounds to 10 bits; the package was proved with 23.
        providers.insert(0, ("CUDAExecutionProvider", {"use_tf32": "0"}))
    session = ort.InferenceSession(network, options, providers=providers)
    session.disable_fallback()  # which would open the content again, with other providers
    session._model_bytes = None  # the content, as large as the network; nothing else reads it
    with suppress(AttributeError):  # a C library without it, such as musl
        ctypes.CDLL(None).malloc_trim(0)  # what reading took, a network's size and more, would stay with the process
    return session


class _OnnxNetwork(Network):
    def __init__(self, session: ort.InferenceSession, runtime: str) -> None:
        self.runtime = runtime
        self._session = session
        self._outputs = [output.name for output in session.get_outputs()]

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        try:
            values = self._session.run(self._outputs, dict(inputs))
        except Exception as error:
            raise PolicyError(
                f"the network failed: {error}", "validate the package: robot-runtime policy validate"
            ) from error
        return {name: np.asarray(value) for name, value in zip(self._outputs, values, strict=True)}


def _check_file(manifest: Manifest, data: bytes) -> None:
    try:
        file = read_onnx(data)
    except ValueError as error:
        raise PackageError(f"{manifest.model.file}: is no ONNX model: {error}", "write the package again") from error
    if missing := file.data - {"", *manifest.model.data}:
        raise PackageError(
            f"{manifest.model.file}: has weights in {', '.join(sorted(missing))}, which the manifest does not name",
            "write the package again with `robot-runtime policy package`",
        )
    if file.opsets[""] != manifest.model.opset:
        raise PackageError(
            f"{manifest.model.file}: uses opset {file.opsets['']}, the manifest has {manifest.model.opset}",
            "correct 'model.opset' in policy.yaml",
        )


def _check_tensors(manifest: Manifest, session: ort.InferenceSession) -> None:
    """Check names, types and shapes; dimensions that are dynamic in the file match any size."""
    for what, declared, found in (
        ("input", manifest.inputs, session.get_inputs()),
        ("output", manifest.outputs, session.get_outputs()),
    ):
        by_name = {argument.name: argument for argument in found}
        if set(by_name) != {tensor.name for tensor in declared}:
            names = ", ".join(sorted(tensor.name for tensor in declared))
            raise PackageError(
                f"{manifest.model.file}: its {what}s are {', '.join(sorted(by_name))}, the manifest's {names}",
                f"correct '{what}s' in policy.yaml",
            )
        for tensor in declared:
            argument = by_name[tensor.name]
            if not _agree(tensor, argument.type, argument.shape):
                raise PackageError(
                    f"{manifest.model.file}: {what} {tensor.name!r} is {argument.type} {argument.shape}, in the "
                    f"manifest {tensor.dtype} {list(tensor.shape)}",
                    f"correct '{what}s' in policy.yaml",
                )


def _agree(tensor: Tensor, kind: str, shape: list[int | str | None]) -> bool:
    sides = zip(shape, tensor.shape, strict=False)
    return (
        DTYPES.get(kind) == tensor.dtype
        and len(shape) == len(tensor.shape)
        and all(not isinstance(side, int) or side == declared for side, declared in sides)
    )
