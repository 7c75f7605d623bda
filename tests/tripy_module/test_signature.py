import pytest

from tripy_module.errors import AnswerError
from tripy_module.signature import canonical, parse_arguments, parse_parameters

ARGUMENTS = parse_arguments("features: int, bias: bool = True, shape: Sequence[int] = (1, 2)")


@pytest.mark.parametrize(
    ("written", "rendered"),
    [
        ("", ""),
        ("features: int", "features: int"),
        ("a:int,b : bool=True", "a: int, b: bool = True"),
        ("eps: float = 1E-5", "eps: float = 1e-5"),
        ("mask: int = 0Xff", "mask: int = 0xFF"),
        ("a: int = 2 ** 3", "a: int = 2**3"),
        ("a: str = 'x, y'", 'a: str = "x, y"'),
        ("a: Sequence[int]=(1,2)", "a: Sequence[int] = (1, 2)"),
        ("a: Optional[Callable[[int],float]]=None", "a: Optional[Callable[[int], float]] = None"),
        ("a: int|None = None", "a: int | None = None"),
        ("dtype: datatype.dtype=datatype.float16", "dtype: datatype.dtype = datatype.float16"),
        ("a: int,\n b: int # noted\n", "a: int, b: int"),
        ("a: float = -(1.5)", "a: float = -1.5"),
    ],
)
def test_arguments_get_the_spelling_of_black(written, rendered):
    assert canonical(parse_arguments(written)) == rendered
    assert canonical(parse_arguments(rendered)) == rendered


@pytest.mark.parametrize(
    ("written", "rendered"),
    [
        ("", ""),
        ("weight:(features,)", "weight: (features,)"),
        ("weight: (features,), bias : (features , 2*features) if bias", None),
        ("scale ?: ()", "scale?: ()"),
        ("weight: shape", "weight: shape"),
        ("weight: (features // 2, shape[0]) if not bias and features>2", None),
    ],
)
def test_parameters_get_the_spelling_of_black(written, rendered):
    found = canonical(parse_parameters(written, ARGUMENTS))

    assert found == rendered or rendered is None
    assert canonical(parse_parameters(found, ARGUMENTS)) == found


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("features", "needs an annotation"),
        ("a: int = foo()", ">>> foo() <<<"),
        ("a: int = (lambda: 1)", ">>> lambda: 1 <<<"),
        ("a: int = [x for x in (1,)]", "admitted"),
        ("a: int = __import__", ">>> __import__ <<<: no such name"),
        ("a: int = datatype.__class__", "admitted"),
        ("a: datatype.dtype = datatype.float64", "no data type of nvtripy"),
        ("a: Sequence[int] = [1]", "write a tuple"),
        ("eps: float = 1", "write 1.0"),
        ("eps: float = -1", "write -1.0"),
        ("n: int = 'abc'", "str is no int"),
        ("n: int = True", "bool is no int"),
        ("n: int = None", "write n: Optional[int] = None"),
        ("n: int = (1, 2)", "this is no int"),
        ("f: Callable[[int], int] = None", "write f: Optional[Callable[[int], int]] = None"),
        ("all: bool", "in use in every module"),
        ("request: bool", "in use in every module"),
        ("a: Tuple[int, ...]", "fixed length"),
        ("a: Literal[1]", "cannot check this annotation"),
        ("a: Type[int]", "cannot check this annotation"),
        ("a: 'int'", "cannot check this annotation"),
        ("dtype: int", "write `dtype: datatype.dtype`"),
        ("*args: int", "without `*`"),
        ("a: int, *, b: int", "without `*`"),
        ("a: int, /", "without `*`"),
        ("a: int = 1, b: int", "no Python parameter list"),
        ("a: int)->(int", "no Python parameter list"),
        ("a: int): print(1)\ndef g(b: int", "no Python parameter list"),
        ("a: int): import os; (", "no Python parameter list"),
        ("self: int", "in use in every module"),
        ("forward: int", "in use in every module"),
        ("tp: int", "in use in every module"),
        ("_a: int", "leading underscore"),
        ("DefaultParameter: int", "has capitals"),
        ("new_layer: int", "in use in every module"),
        ("a: int, a: int", "stands there twice"),
        ("a: int = {{ 1 }}", "looks like a template"),
        ("\u0430: int", "ASCII"),
        ("a: str = 'it\\'s'", "quotes and backslashes"),
        ("a: int = " + "1 + " * 40 + "1", "longer than"),
        ("a: int = " + "(" * 500 + "1" + ")" * 500, "no Python parameter list"),
        ("a: int," * 500, "at most 2000"),
        ("a: int\0", "ASCII"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(written, problem):
    with pytest.raises(AnswerError) as error:
        parse_arguments(written)

    assert str(error.value).startswith("arguments: ")
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("weight", "write `name: shape`"),
        ("weight:", "write `name: shape`"),
        ("weight: features", "write for example `(features,)`"),
        ("weight: (features / 2,)", "write `//` for `/`"),
        ("weight: (n,)", ">>> n <<<: no such name; use one of: bias, features, shape"),
        ("weight: (open('x'),)", '>>> open("x") <<<'),
        ("weight: (features,) if open('x')", '>>> open("x") <<<'),
        ("weight: (features,) if bias else (1,)", "`name: shape if condition`"),
        ("weight: 1) + (2,", "a shape is a tuple"),
        ("weight: (features,), weight: (1,)", "stands there twice"),
        ("features: (1,)", "an argument has this name"),
        ("state_dict: (1,)", "in use in every module"),
        ("weight: ((x := 3),)", "admitted"),
        ("weight: (features.real,) if features.__class__", "admitted"),
        ("1weight: (1,)", "no Python name"),
        ("weight: (features", "`name: shape if condition`"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(written, problem):
    with pytest.raises(AnswerError) as error:
        parse_parameters(written, ARGUMENTS)

    assert str(error.value).startswith("parameters: ")
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_a_bool_argument_may_name_the_parameter_that_it_switches():
    (bias,) = parse_parameters("bias: (features,) if bias", ARGUMENTS)

    assert (bias.name, bias.shape, bias.condition, bias.optional) == ("bias", "(features,)", "bias", False)
