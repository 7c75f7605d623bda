"""What tripy_cpu costs: beside nvtripy's own work, beside NumPy alone, and beside torch on the CPU where it is at hand.

`uv run python benchmarks/backend.py [RUNS]` prints medians; the sides of every ratio are taken in turn in one run, on
one thread.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import tripy_cpu  # noqa: E402

tripy_cpu.install(force=True)

import numpy as np  # noqa: E402
import nvtripy as tp  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

IMPORT = """
import time, ast, contextlib, dataclasses, enum, importlib.util, inspect, re, threading, typing  # nvtripy's own imports
start = time.perf_counter()
import tripy_cpu; tripy_cpu.install(force=True)
installed = time.perf_counter()
import nvtripy
print(installed - start, time.perf_counter() - installed)
"""


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the mean time of a call."""
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - start) / repeats


def compare(label: str, ours: Callable[[], Any], theirs: Callable[[], Any], what: str, runs: int, repeats: int) -> None:
    """Print the ratio of two medians."""
    ours(), theirs()
    pairs = [(seconds(ours, repeats), seconds(theirs, repeats)) for _ in range(runs)]
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{label:34} {mine * 1e3:9.3f} ms  {mine / other:6.2f} x {what}")


def gpu(array: Any) -> Any:
    """Return an array as a tensor "on the device"."""
    return tp.copy(tp.Tensor(np.ascontiguousarray(array)), tp.device("gpu"))


def compiled(function: Callable[..., Any], *arrays: Any) -> Callable[[], Any]:
    """Return a call of the compiled function on the arrays."""
    inputs = [gpu(array) for array in arrays]
    program = tp.compile(function, args=[tp.InputInfo(array.shape, tp.float32) for array in arrays])
    return lambda: program(*inputs)


def measure_import(runs: int) -> None:
    """Print what `install` adds to the import of nvtripy."""
    outputs = [
        subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(runs)
    ]
    install, nvtripy = (statistics.median(map(float, column)) for column in zip(*outputs, strict=True))
    print(f"{'import and install tripy_cpu':34} {install * 1e3:9.3f} ms  {install / nvtripy:6.2f} x import nvtripy")


class Stopwatch:
    """Adds up the time that is spent in functions which it was put around."""

    def __init__(self) -> None:
        self.total = 0.0
        self._is_running = False

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed unless it is called from another that is."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._is_running:
                return function(*args, **kwargs)
            self._is_running, start = True, time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.total += time.perf_counter() - start
                self._is_running = False

        return timed


def measure_eager(runs: int) -> None:
    """Print which part of an evaluation is spent in what nvtripy calls of tripy_cpu."""
    from tripy_cpu import compiler, executable, ir, runtime, session

    stopwatch = Stopwatch()
    entries: tuple[tuple[Any, str], ...] = (
        (compiler.CompilationTask, "run"),
        (executable.Executable, "__init__"),
        (ir, "record"),
        (runtime.RuntimeClient, "create_memref"),
        (session.RuntimeSession, "__init__"),
        (session.RuntimeSession, "execute_function"),
    )
    x = gpu(np.ones((2, 3), np.float32))
    (x + x).eval()
    shares = []
    with contextlib.ExitStack() as patches:
        for owner, name in entries:
            patches.enter_context(mock.patch.object(owner, name, stopwatch.around(getattr(owner, name))))
        for _ in range(runs):
            stopwatch.total, whole = 0.0, 0.0
            for _ in range(50):
                y = x + x
                whole += seconds(y.eval, 1)
            shares.append(stopwatch.total / whole)
    print(f"{'eager x + x, shape (2, 3)':34} {'':12}  {statistics.median(shares):6.2f} of eval() is tripy_cpu's")


def measure_small_programs(runs: int) -> None:
    """Print compiled calls beside the NumPy calls that they make, and beside a call in which nothing is computed."""
    from tripy_cpu.session import RuntimeSession

    for size in (1_000, 10_000, 100_000):
        x = np.linspace(-1, 1, size, dtype=np.float32)
        call = compiled(lambda x: tp.exp(x) * x + tp.tanh(x), x)
        label = f"exp(x) * x + tanh(x), {size} elements"
        compare(label, call, lambda x=x: np.exp(x) * x + np.tanh(x), "NumPy", runs, 100)
        result = [call().trace_tensor.producer.data]
        with mock.patch.object(RuntimeSession, "execute_function", return_value=result):
            alone = statistics.median(seconds(call, 100) for _ in range(runs))
        print(f"{'  of which nvtripy, at most':34} {alone * 1e3:9.3f} ms")


def measure_saving(runs: int) -> None:
    """Print what 64 MiB of weights take as bytes, beside copying them."""
    from tripy_cpu.executable import Executable

    weight = np.random.default_rng(0).standard_normal((4096, 4096)).astype(np.float32)
    program = tp.compile(lambda x: x @ tp.Tensor(weight), args=[tp.InputInfo((1, 4096), tp.float32)])
    engine = program.serialized_tensorrt_engine
    label = f"64 MiB to and from {len(engine) / 1e6:.1f} MB"
    compare(label, lambda: Executable(program.serialized_tensorrt_engine), weight.copy, "a copy", runs, 1)


def layers() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Return our call and torch's, by name."""
    rng = np.random.default_rng(0)
    F = torch.nn.functional  # noqa: N806

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    def t(array: Any) -> Any:
        return torch.from_numpy(array)

    x, weight, bias = normal(32, 1024), normal(4096, 1024), normal(4096)
    scale, shift = normal(1024), normal(1024)
    image, filters = normal(1, 64, 56, 56), normal(64, 64, 3, 3)
    q, k, v = normal(8, 128, 512), normal(8, 128, 512), normal(8, 128, 512)
    million, rows = normal(1_000_000), normal(1000, 1000)

    linear = tp.Linear(1024, 4096)
    linear.weight, linear.bias = tp.Tensor(weight), tp.Tensor(bias)
    norm = tp.LayerNorm(1024)
    norm.weight, norm.bias = tp.Tensor(scale), tp.Tensor(shift)
    conv = tp.Conv(64, 64, (3, 3), padding=((1, 1), (1, 1)), bias=False)
    conv.weight = tp.Tensor(filters)
    gain = tp.Tensor(scale)

    def rms_norm(x: Any) -> Any:
        return x * tp.rsqrt(tp.mean(x * x, dim=-1, keepdim=True) + 1e-5) * gain

    def attention(q: Any, k: Any, v: Any) -> Any:
        return tp.softmax(q @ tp.transpose(k, -1, -2) * 512**-0.5, dim=-1) @ v

    with torch.inference_mode():
        xt, wt, bt, st, ht, it, ft, mt, rt = map(t, (x, weight, bias, scale, shift, image, filters, million, rows))
        qt, kt, vt = map(t, (q, k, v))
    return {
        "Linear 1024 to 4096, 32 rows": (compiled(linear, x), lambda: F.linear(xt, wt, bt)),
        "LayerNorm 32 x 1024": (compiled(norm, x), lambda: F.layer_norm(xt, (1024,), st, ht)),
        "RMSNorm 32 x 1024": (compiled(rms_norm, x), lambda: F.rms_norm(xt, (1024,), st, 1e-5)),
        "Conv 64 to 64, 3 x 3, 56 x 56": (compiled(conv, image), lambda: F.conv2d(it, ft, padding=1)),
        "attention 8 x 128 x 512": (compiled(attention, q, k, v), lambda: F.scaled_dot_product_attention(qt, kt, vt)),
        "GELU, a million": (compiled(tp.gelu, million), lambda: F.gelu(mt)),
        "softmax, 1000 x 1000": (compiled(lambda x: tp.softmax(x, dim=-1), rows), lambda: torch.softmax(rt, -1)),
    }


def main() -> None:
    """Measure and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    measure_import(runs)
    measure_eager(runs)
    measure_small_programs(runs)
    measure_saving(runs)
    if torch is None:
        print("torch is not installed, so nothing is compared with it")
        return
    torch.set_num_threads(1)
    with torch.inference_mode():
        for label, (ours, theirs) in layers().items():
            compare(label, ours, theirs, "torch", runs, 20)


if __name__ == "__main__":
    main()
