"""Mistakes are reported as nvtripy reports them on the GPU: with its texts and the line of the user."""

from __future__ import annotations

from typing import Any

import numpy as np
import nvtripy as tp
import pytest
from mlir_tensorrt.compiler import ir
from nvtripy.backend.mlir.utils import make_tensor_location, parse_tensor_names_from_location
from nvtripy.frontend.module.layernorm import layernorm
from nvtripy.trace.trace import Trace


def on_gpu(*shape: int, dtype: Any = np.float32) -> Any:
    return tp.copy(tp.Tensor(np.ones(shape, dtype)), tp.device("gpu"))


MISTAKES = {
    "broadcast dimensions must be conformable": lambda a: a(2, 3) + a(4, 3),
    "reshape changes volume to multiple of original non-zero volume": lambda a: tp.reshape(a(2, 3), (5,)),
    "all concat input tensors must have the same dimensions": lambda a: tp.concatenate([a(2, 3), a(2, 2)], dim=0),
    "last dimension of input0 = 2 and last dimension of input1 = 3 but must match": lambda a: a(2) @ a(3),
    "The normalization scale is not broadcast-compatible with the input at dimension 1": lambda a: layernorm(
        a(2, 3), a(2), a(2), 1e-5
    ),
    "out of bounds access": lambda a: a(3)[5],
}


def on_cpu(*shape: int) -> Any:
    return tp.Tensor(np.ones(shape, np.float32))


@pytest.mark.parametrize("make", [on_cpu, on_gpu])
@pytest.mark.parametrize("text", MISTAKES)
def test_evaluation_names_the_mistake_and_the_line(text: str, make: Any) -> None:
    result = MISTAKES[text](make)
    with pytest.raises(tp.TripyException) as caught:
        result.eval()
    message = str(caught.value)
    assert text in message
    assert "failed to run pass pipeline" in message
    assert "This originated from the following operation" in message
    assert __file__ in message.partition("This originated")[2]


def test_compilation_names_the_mistake_and_the_line() -> None:
    def function(x: Any) -> Any:
        return tp.reshape(x, (7,))

    with pytest.raises(tp.TripyException, match="reshape changes volume") as caught:
        tp.compile(function, args=[tp.InputInfo(((1, 2, 3), 3), dtype=tp.float32)])
    assert "return tp.reshape(x, (7,))" in str(caught.value)


def test_compilation_does_not_guess_shapes_that_depend_on_data() -> None:
    def function(x: Any, size: Any) -> Any:
        return tp.reshape(x, (-1, size))

    compiled = tp.compile(
        function, args=[tp.InputInfo(((1, 4, 6),), dtype=tp.float32), tp.DimensionInputInfo(value_bounds=(1, 2, 3))]
    )
    assert compiled(on_gpu(6), tp.DimensionSize(3)).shape == (2, 3)
    with pytest.raises(tp.TripyException, match="reshape changes volume"):
        compiled(on_gpu(5), tp.DimensionSize(2))


def compiled_sum() -> Any:
    batch = tp.NamedDimension("batch", 1, 2, 4)
    return tp.compile(
        lambda x, y: x + tp.sum(y), args=[tp.InputInfo((batch, 3), tp.float32), tp.InputInfo((batch,), tp.float32)]
    )


def test_shapes_outside_the_bounds_are_refused() -> None:
    with pytest.raises(tp.TripyException, match="Unexpected tensor shape") as caught:
        compiled_sum()(on_gpu(5, 3), on_gpu(5))
    assert "min=(1, 3), max=(4, 3)" in str(caught.value)


def test_another_rank_is_refused() -> None:
    with pytest.raises(tp.TripyException, match="Unexpected tensor rank"):
        compiled_sum()(on_gpu(3), on_gpu(3))


def test_another_type_is_refused() -> None:
    with pytest.raises(tp.TripyException, match="Unexpected tensor data type"):
        compiled_sum()(on_gpu(2, 3, dtype=np.int32), on_gpu(2))


def test_dimensions_of_one_name_must_be_equal() -> None:
    assert compiled_sum()(on_gpu(2, 3), on_gpu(2)).tolist() == [[3.0] * 3] * 2
    with pytest.raises(tp.TripyException, match="dimensions named 'batch' must be equal"):
        compiled_sum()(on_gpu(2, 3), on_gpu(3))


def test_sizes_outside_their_bounds_are_refused() -> None:
    compiled = tp.compile(
        lambda x, size: tp.reshape(x, (size, -1)),
        args=[tp.InputInfo((4,), tp.float32), tp.DimensionInputInfo(value_bounds=(1, 2, 4))],
    )
    assert compiled(on_gpu(4), tp.DimensionSize(4)).shape == (4, 1)
    with pytest.raises(tp.TripyException, match="has value 8, which is not within 1 to 4"):
        compiled(on_gpu(4), tp.DimensionSize(8))


@pytest.mark.parametrize("attempt", range(2))
def test_plugins_are_refused_by_name(attempt: int) -> None:
    x = on_cpu(2)
    result = tp.plugin(name="CustomGelu", inputs=[x], output_info=[(1, tp.float32)])
    with pytest.raises(tp.TripyException, match="plugin 'CustomGelu' cannot run on tripy_cpu: plugins need TensorRT"):
        result.eval()


def test_deployed_plugins_are_refused_by_name() -> None:
    with pytest.raises(RuntimeError, match="plugin 'example::add' cannot run on tripy_cpu"):
        tp.plugin("example::add", inputs=[on_cpu(2)])


def test_plugins_cannot_be_written() -> None:
    import tensorrt.plugin as trtp

    with pytest.raises(AttributeError, match="plugins need TensorRT"):
        trtp.register("example::add")


@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.uint8])
def test_arrays_of_types_that_nvtripy_lacks_are_refused(dtype: Any) -> None:
    with pytest.raises(tp.TripyException, match="does not have a corresponding nvtripy data type"):
        tp.Tensor(np.zeros(2, dtype))


def test_tensors_of_more_dimensions_than_tensorrt_has_are_refused() -> None:
    assert tp.reshape(on_cpu(2), (1,) * 7 + (2,)).eval().rank == 8
    with pytest.raises(tp.TripyException, match="returns 9 dimensions, but TensorRT has at most 8"):
        tp.reshape(on_cpu(2), (1,) * 8 + (2,)).eval()


def test_the_recorded_program_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    with tp.logger.use_verbosity("mlir"):
        (on_cpu(2) + 1.0).eval()
    text = capsys.readouterr().out
    assert "element_wise(input1=%0, input2=" in text
    assert "tensor<2xf32>" in text


def test_modules_types_and_locations_print_as_the_compilers_do() -> None:
    module = Trace([(on_cpu(2) + 1.0).trace_tensor]).to_mlir()
    assert "element_wise" in str(module)
    assert str(ir.RankedTensorType.get([2], ir.F32Type.get())) == "tensor<2xf32>"
    assert str(ir.F32Type.get()) == "f32"
    assert str(ir.Location.unknown()) == "loc(unknown)"
    location = make_tensor_location(["a", "b"], ["c"], "add")
    assert str(location) == 'loc(fused<"add">["a,b;;<out>;;c"])'
    assert parse_tensor_names_from_location(f"{location}: error: text")[:2] == (["a", "b"], ["c"])
