from pathlib import Path

import pytest
from harness import RECIPES

from tripy_module.answers import RecipeSignature, check_arguments, check_parameters
from tripy_module.errors import AnswerError
from tripy_module.recipes import load
from tripy_module.signature import canonical

ROOT = Path(__file__).resolve().parents[2]


def test_a_recipe_says_what_it_has_by_itself():
    assert load(ROOT, "affine") == RecipeSignature(
        arguments="features: int, bias: bool = True, dtype: datatype.dtype = datatype.float32",
        parameters="weight: (features,), bias: (features,) if bias",
    )


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipes_own_signature_keeps_the_rules_for_answers(recipe):
    found = load(ROOT, recipe)

    arguments = check_arguments(found.arguments, found)
    parameters = check_parameters(found.parameters, arguments, found)

    assert canonical(arguments) == found.arguments
    assert canonical(parameters) == found.parameters


def test_an_unknown_recipe_is_refused_with_those_that_are_known():
    with pytest.raises(
        AnswerError, match=r"^recipe: there is no recipe 'dense'; choose one of activation, affine, .*rms_norm"
    ):
        load(ROOT, "dense")
