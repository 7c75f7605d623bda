import dataclasses

import pytest

from tripy_module.answers import Answers, RecipeSignature, canonical_parameters, module_name_for, validate
from tripy_module.errors import AnswerError

RECIPE = RecipeSignature(arguments="features: int, bias: bool = True", parameters="weight: (features,)")
GOOD = Answers(
    class_name="RMSNorm",
    module_name="rms_norm",
    recipe="rms_norm",
    summary="",
    arguments="",
    parameters="",
    mode="complete",
    package="nvtripy.frontend.module",
    year="2026",
    copyright_holder="NVIDIA CORPORATION & AFFILIATES",
    constant_fields="",
)


@pytest.mark.parametrize(
    ("class_name", "module_name"),
    [
        ("RMSNorm", "rms_norm"),
        ("Affine", "affine"),
        ("LoRALinear", "lo_ra_linear"),
        ("Conv2dBlock", "conv2d_block"),
        ("MLP", "mlp"),
        ("Attention_Block", "attention_block"),
        ("Foo2D", "foo2d"),
        ("Layer2Norm", "layer2_norm"),
    ],
)
def test_module_name_is_the_snake_case_of_the_class_name(class_name, module_name):
    assert module_name_for(class_name) == module_name


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"summary": "Normalizes 'everything', quickly."},
        {"arguments": "features: int, alpha: float, bias: bool = False, flag: bool = False"},
        {"parameters": "weight: (features,), scale?: ()"},
        {"package": "my_layers.norm"},
        {"copyright_holder": ""},
        {"constant_fields": "features, bias,"},
    ],
)
def test_good_answers_are_accepted(changes):
    validate(dataclasses.replace(GOOD, **changes), RECIPE)


@pytest.mark.parametrize(
    ("answer", "value", "problem"),
    [
        ("class_name", "", "is empty"),
        ("class_name", "rmsNorm", "CapWords"),
        ("class_name", "RMS-Norm", "no Python name"),
        ("class_name", "RMS Norm", "no Python name"),
        ("class_name", "../Evil", "no Python name"),
        ("class_name", "R\u041cSNorm", "ASCII"),
        ("class_name", "None", "keyword"),
        ("class_name", "Optional", "imports"),
        ("class_name", "A" * 61, "61 characters"),
        ("class_name", "A\0B", "no Python name"),
        ("class_name", "X\nimport os", "no Python name"),
        ("module_name", "class", "keyword"),
        ("module_name", "match", "keyword"),
        ("module_name", "Rms", "capitals"),
        ("module_name", "../rms", "no Python name"),
        ("module_name", "/etc/rms", "no Python name"),
        ("module_name", "a\\b", "no Python name"),
        ("module_name", "{{ 7 * 7 }}", "no Python name"),
        ("module_name", "_rms", "private"),
        ("module_name", "con", "Windows"),
        ("module_name", "com1", "Windows"),
        ("module_name", "export", "uses"),
        ("module_name", "test_rms", "test file"),
        ("summary", 'ends here""" import os', '"""'),
        ("summary", "two\nlines", "one line"),
        ("summary", "caf\u00e9", "ASCII"),
        ("summary", "{{ cookiecutter }}", "template"),
        ("summary", "back\\slash", "backslash"),
        ("summary", " padded", "no space"),
        ("summary", "x" * 111, "110"),
        ("summary", "As import numpy does", "rephrase"),
        ("arguments", "features: float", "needs `features: int`"),
        ("arguments", "bias: bool = True", "needs `features: int`"),
        ("arguments", "features: int, bias: bool", "write for example `bias: bool = True`"),
        ("arguments", "features: int, f: Callable, bias: bool = True", "cannot check this annotation"),
        ("arguments", "features: int, f: Dict[str, int], bias: bool = True", "give a default"),
        ("parameters", "bias: (features,)", "needs `weight: (features,)`"),
        ("parameters", "weight: (features, 2)", "needs `weight: (features,)`"),
        ("package", "my-layers", "no Python name"),
        ("package", "my..layers", "is empty"),
        ("package", "class.layers", "keyword"),
        ("package", "tests", "hide another package"),
        ("package", "np", "hide another package"),
        ("package", "inspect.layers", "hide another package"),
        ("module_name", "float", "uses"),
        ("year", "26", "no year"),
        ("year", "2026)", "no year"),
        ("copyright_holder", "A\nimport os", "one line"),
        ("constant_fields", "features,nothing", "'nothing' is no argument"),
    ],
)
def test_bad_answers_are_refused_in_one_line_that_names_the_answer(answer, value, problem):
    with pytest.raises(AnswerError) as error:
        validate(dataclasses.replace(GOOD, **{answer: value}), RECIPE)

    assert str(error.value).startswith(f"{answer}: ")
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_a_private_variable_of_the_context_is_what_was_rendered():
    context = dataclasses.asdict(GOOD) | {"arguments": "a:int", "__arguments": "a: int"}

    assert Answers.from_context(context).arguments == "a: int"


def test_a_missing_answer_is_named():
    context = dataclasses.asdict(GOOD)
    del context["recipe"]

    with pytest.raises(AnswerError, match=r"^recipe: no answer was given"):
        Answers.from_context(context)


def test_parameters_are_read_with_the_arguments_that_were_added():
    found = canonical_parameters(
        "weight:(features,),gain:(groups,)", "features: int, groups: int, bias: bool = True", RECIPE
    )

    assert found == "weight: (features,), gain: (groups,)"
