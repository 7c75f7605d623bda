"""nvtripy's own modules: evaluated, compiled for a range of shapes, saved and loaded, all with the same result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import nvtripy as tp
import pytest

RNG = np.random.default_rng(3)


def filled(module: Any, dtype: Any) -> Any:
    """Return the module with random parameters."""
    for name, parameter in module.state_dict().items():
        shape = tuple(int(size) for size in parameter.shape)
        value = tp.cast(tp.Tensor(RNG.uniform(-1, 1, shape).astype(np.float32)), dtype).eval()
        module.load_state_dict({name: tp.copy(value, tp.device("cpu"))}, strict=False)
    return module


MODULES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], Any]] = {
    "Linear": (lambda dtype: tp.Linear(6, 4, dtype=dtype), (2, 6), None),
    "Linear without bias": (lambda dtype: tp.Linear(6, 4, bias=False, dtype=dtype), (2, 6), None),
    "LayerNorm": (lambda dtype: tp.LayerNorm((6,), dtype=dtype), (2, 6), None),
    "GroupNorm": (lambda dtype: tp.GroupNorm(2, 6, dtype=dtype), (2, 6, 5), None),
    "InstanceNorm": (lambda dtype: tp.InstanceNorm(3, dtype=dtype), (2, 3, 4, 5), None),
    "Conv": (lambda dtype: tp.Conv(3, 4, (2, 3), padding=((1, 0), (0, 1)), dtype=dtype), (2, 3, 5, 6), None),
    "Conv 1D": (lambda dtype: tp.Conv(4, 4, (3,), groups=2, stride=(2,), dtype=dtype), (2, 4, 9), None),
    "ConvTranspose": (lambda dtype: tp.ConvTranspose(3, 4, (2, 3), stride=(2, 1), dtype=dtype), (2, 3, 5, 6), None),
    "Embedding": (lambda dtype: tp.Embedding(7, 4, dtype=dtype), (2, 3), tp.int32),
    "Sequential": (
        lambda dtype: tp.Sequential(tp.Linear(6, 4, dtype=dtype), tp.relu, tp.Linear(4, 2, dtype=dtype)),
        (2, 6),
        None,
    ),
}


def to_numpy(tensor: Any) -> np.ndarray:
    return np.array(tp.cast(tensor, tp.float32).tolist(), np.float32)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float16, tp.bfloat16], ids=str)
@pytest.mark.parametrize("name", MODULES)
def test_evaluated_compiled_and_loaded_agree(name: str, dtype: Any, tmp_path: Path) -> None:
    if name == "ConvTranspose" and dtype is tp.bfloat16:
        pytest.skip("TensorRT has no deconvolution in bfloat16")
    make, shape, input_dtype = MODULES[name]
    module = filled(make(dtype), dtype)
    data = RNG.integers(0, 7, shape) if input_dtype else RNG.uniform(-2, 2, shape)
    x = tp.cast(tp.Tensor(data.astype(np.int32 if input_dtype else np.float32)), input_dtype or dtype).eval()

    compiled = tp.compile(module, args=[tp.InputInfo(((1, shape[0], 4), *shape[1:]), dtype=input_dtype or dtype)])
    path = tmp_path / "executable.json"
    compiled.save(str(path))
    loaded = tp.Executable.load(str(path))

    eager = module(x)
    assert eager.dtype == dtype
    expected = to_numpy(eager)
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(to_numpy(compiled(x)), expected)
    np.testing.assert_array_equal(to_numpy(loaded(x)), expected)
    single = tp.copy(x, tp.device("cpu"))[:1].eval()
    np.testing.assert_allclose(to_numpy(loaded(single)), expected[:1], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("quant_dtype", [tp.int8, tp.float8, tp.int4], ids=str)
def test_quantized_linear(quant_dtype: Any) -> None:
    linear = tp.Linear(4, 2, quant_dtype=quant_dtype, weight_quant_dim=None)
    weight = np.array([[1, 2, 3, 4], [-1, -2, -3, -4]], np.float32)
    linear.weight = tp.Tensor(weight)
    linear.bias = tp.Tensor([0.5, -0.5])
    linear.weight_scale = tp.Tensor(1.0)
    if quant_dtype is not tp.int4:
        linear.input_scale = tp.Tensor(1.0)
    x = np.array([[1, 0, 2, 1]], np.float32)
    np.testing.assert_allclose(to_numpy(linear(tp.Tensor(x))), x @ weight.T + np.array([0.5, -0.5]))


def test_an_executable_holds_its_constants_compactly(tmp_path: Path) -> None:
    weight = tp.Tensor(np.zeros((64, 64), np.float32))
    compiled = tp.compile(lambda x: x @ weight, args=[tp.InputInfo((1, 64), dtype=tp.float32)])
    engine = compiled.serialized_tensorrt_engine
    assert engine.startswith(b"TRIPYCPU")
    assert len(engine) < 64 * 64 * 4 + 2000


def test_an_executable_of_something_else_is_refused() -> None:
    from mlir_tensorrt.runtime.api import Executable, MTRTException

    with pytest.raises(MTRTException, match="was not saved by tripy_cpu"):
        Executable(b"\x00" * 64)


def test_several_outputs_and_nested_inputs() -> None:
    def function(pair: dict[str, Any]) -> tuple[Any, Any]:
        values, indices = tp.topk(pair["a"] + pair["b"], k=2, dim=1)
        return values, indices

    info = tp.InputInfo(((1, 2, 3), 4), dtype=tp.float32)
    compiled = tp.compile(function, args=[{"a": info, "b": info}])
    a = tp.Tensor([[1.0, 5.0, 2.0, 4.0]]).eval()
    values, indices = compiled({"a": a, "b": a})
    assert values.tolist() == [[10.0, 8.0]]
    assert indices.tolist() == [[1, 3]]
