"""What recipes say of themselves, read from their templates without rendering them."""

from __future__ import annotations

from pathlib import Path

from tripy_module.answers import RecipeSignature
from tripy_module.errors import AnswerError


def load(template: Path, recipe: str) -> RecipeSignature:
    """Read a recipe's own arguments and parameters.

    Args:
        template: The template's root.
        recipe: The name of a file in `templates/recipes/`.

    Raises:
        AnswerError: There is no such recipe.
    """
    from jinja2 import Environment, nodes

    known = {path.stem: path for path in (template / "templates" / "recipes").glob("*.jinja")}
    if recipe not in known:
        raise AnswerError("recipe", f"there is no recipe {recipe!r}; choose one of {', '.join(sorted(known))}")
    tree = Environment(autoescape=True).parse(known[recipe].read_text(encoding="utf-8"))
    texts = {
        assignment.target.name: assignment.node.value
        for assignment in tree.find_all(nodes.Assign)
        if isinstance(assignment.target, nodes.Name) and isinstance(assignment.node, nodes.Const)
    }
    return RecipeSignature(arguments=texts["arguments"], parameters=texts["parameters"])
