"""Memory is shared through DLPack both ways, and given back."""

from __future__ import annotations

import gc
import importlib.util
import tracemalloc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import nvtripy as tp
import pytest
from mlir_tensorrt.runtime.api import MTRTException, RuntimeClient, ScalarTypeCode

from tripy_cpu.memory import _tensor_in, as_array, export_capsule, import_capsule

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")

NUMPY_TYPES = [np.float32, np.float16, np.int8, np.int32, np.int64, np.bool_]


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)])
def test_numpy_arrays_come_back_as_they_were(dtype: Any, shape: tuple[int, ...]) -> None:
    array = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
    result = np.from_dlpack(tp.Tensor(array))
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, array)


def test_imported_memory_is_shared() -> None:
    array = np.zeros(3, np.float32)
    tensor = tp.Tensor(array)
    array[1] = 5
    assert tensor.tolist() == [0, 5, 0]


def test_exported_memory_is_shared() -> None:
    tensor = tp.ones((3,)).eval()
    assert np.shares_memory(np.from_dlpack(tensor), np.from_dlpack(tensor))


def test_a_recorded_constant_does_not_follow_later_changes() -> None:
    array = np.zeros(2, np.float32)
    compiled = tp.compile(lambda x: x + tp.Tensor(array), args=[tp.InputInfo((2,), tp.float32)])
    array[:] = 9
    assert compiled(tp.ones((2,)).eval()).tolist() == [1, 1]


def test_evaluating_copies() -> None:
    array = np.zeros(2, np.float32)
    tensor = tp.Tensor(array).eval()
    array[:] = 9
    assert tensor.tolist() == [0, 0]


def test_results_share_no_memory_with_inputs_constants_or_each_other() -> None:
    weight = tp.Tensor(np.ones((2, 3), np.float32))

    def function(x: Any) -> Any:
        fresh = x + 1.0
        return x, tp.reshape(x, (3, 2)), fresh, tp.reshape(fresh, (6,)), weight * 1.0

    program = tp.compile(function, args=[tp.InputInfo((2, 3), tp.float32)])
    x = tp.copy(tp.Tensor(np.zeros((2, 3), np.float32)), tp.device("gpu"))
    for _ in range(2):
        arrays = [np.from_dlpack(item) for item in (x, *program(x), *program(x))]
        for index, array in enumerate(arrays):
            assert not any(np.shares_memory(array, other) for other in arrays[index + 1 :]), index


def test_results_of_a_call_are_not_overwritten_by_the_next() -> None:
    compiled = tp.compile(lambda x: tp.reshape(x, (2,)), args=[tp.InputInfo((1, 2), tp.float32)])
    x = tp.copy(tp.Tensor([[1.0, 2.0]]), tp.device("gpu"))
    first = compiled(x)
    assert not np.shares_memory(np.from_dlpack(first), np.from_dlpack(x))


@pytest.mark.parametrize(("name", "code", "bits"), [("bf16", 4, 16), ("f8e4m3fn", 2, 8), ("i1", 6, 8), ("i4", 0, 4)])
def test_types_that_numpy_lacks_have_their_own_code(name: str, code: int, bits: int) -> None:
    memory = RuntimeClient().create_memref(shape=(2, 3), dtype=ScalarTypeCode(name))
    kind = _tensor_in(memory.__dlpack__()).dtype
    assert (kind.code, kind.bits, kind.lanes) == (code, bits, 1)


def test_bfloat16_comes_back_as_it_was() -> None:
    array = np.array([1.5, -2, 3e38], ml_dtypes.bfloat16)
    assert import_capsule(export_capsule(array)).tolist() == array.tolist()


def test_bfloat16_is_readable_as_a_list() -> None:
    assert tp.cast(tp.Tensor([1.5, 2.0]), tp.bfloat16).tolist() == [1.5, 2.0]


@pytest.mark.parametrize("array", [np.ones((3, 2), np.float32).T, np.ones(6, np.float32)[::2]])
def test_strided_arrays_are_refused(array: np.ndarray) -> None:
    with pytest.raises(tp.TripyException, match=r"Non-canonical strides detected") as caught:
        tp.Tensor(array)
    assert "np.ascontiguousarray(array)" in str(caught.value)


def test_strides_of_single_elements_do_not_count() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)[:1]
    assert tp.Tensor(array.T[:, ::-1]).tolist() == [[0], [1], [2]]


def test_a_consumed_capsule_is_refused() -> None:
    capsule = np.ones(2, np.float32).__dlpack__()
    holder = type("Holder", (), {"__dlpack__": lambda self, **_: capsule, "__dlpack_device__": lambda self: (1, 0)})()
    np.from_dlpack(holder)
    with pytest.raises(MTRTException, match="has not been consumed"):
        import_capsule(capsule)


def test_the_devices_memory_is_refused() -> None:
    capsule = np.ones(2, np.float32).__dlpack__()
    _tensor_in(capsule).device_type = 2
    with pytest.raises(MTRTException, match="memory of the CPU only"):
        import_capsule(capsule)
    _tensor_in(capsule).device_type = 1


class Owner(np.ndarray):
    """An array that can be watched."""


def test_imported_memory_lives_as_long_as_the_tensor() -> None:
    source = np.arange(4, dtype=np.float32).view(Owner)
    watch = weakref.ref(source)
    tensor = tp.Tensor(source)
    del source
    gc.collect()
    assert watch() is not None
    assert tensor.tolist() == [0, 1, 2, 3]
    del tensor
    gc.collect()
    assert watch() is None


def test_exported_memory_lives_as_long_as_its_reader() -> None:
    memory = RuntimeClient().create_memref(np.arange(4), shape=(4,), dtype=ScalarTypeCode.i32)
    reader = np.from_dlpack(memory)
    del memory
    gc.collect()
    assert reader.tolist() == [0, 1, 2, 3]


def test_round_trips_do_not_leak() -> None:
    watches = []
    for _ in range(50):
        source = np.zeros(1000, np.float32).view(Owner)
        watches.append(weakref.ref(source))
        reader = np.from_dlpack(tp.Tensor(np.from_dlpack(tp.Tensor(source)).copy()))
        assert reader.shape == (1000,)
        del source, reader
    gc.collect()
    assert [watch() for watch in watches] == [None] * 50


def test_ten_thousand_round_trips_leave_nothing_behind() -> None:
    def round_trips(count: int) -> None:
        for _ in range(count):
            array = np.zeros((10, 100), np.float32)
            assert import_capsule(export_capsule(import_capsule(export_capsule(array)))).shape == (10, 100)

    round_trips(100)  # what is made once is made now
    tracemalloc.start()
    try:
        round_trips(10_000)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000  # ten bytes each; an array takes four thousand


def test_copies_between_devices() -> None:
    host = tp.Tensor([1, 2])
    device = tp.copy(host, tp.device("gpu"))
    assert (host.device.kind, device.device.kind) == ("cpu", "gpu")
    assert tp.copy(device, tp.device("cpu")).tolist() == [1, 2]
    assert device.__dlpack_device__() == (1, 0)


def test_memory_compares_by_identity() -> None:
    client = RuntimeClient()
    a, b = (client.create_memref(shape=(2,), dtype=ScalarTypeCode.f32) for _ in range(2))
    assert a == a
    assert a != b
    assert as_array(a).tolist() == as_array(b).tolist()


def test_streams_are_told_apart() -> None:
    stream = tp.Stream()
    assert stream != tp.Stream()
    assert stream.ptr != 0
    stream.synchronize()


@needs_torch
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int8", "int32", "int64", "bool"])
def test_torch_tensors_come_back_as_they_were(name: str) -> None:
    torch = importlib.import_module("torch")
    source = torch.ones((2, 3)).to(getattr(torch, name))
    tensor = tp.Tensor(source)
    assert str(tensor.dtype) == name
    back = torch.from_dlpack(tensor)
    assert back.dtype == source.dtype
    assert torch.equal(back, source)
    assert torch.equal(torch.from_dlpack(tensor.eval()), source)


@needs_torch
def test_torchs_strided_tensors_are_refused_with_its_own_remedy() -> None:
    torch = importlib.import_module("torch")
    with pytest.raises(tp.TripyException, match=r"tensor\.contiguous\(\)"):
        tp.Tensor(torch.ones((3, 2)).T)
