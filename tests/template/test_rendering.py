"""What is rendered needs no formatting afterwards, and follows upstream's rules."""

import ast
import itertools
import os
import re
import subprocess
import sys

import pytest
from harness import RECIPES, extended

SIGNATURES = [
    ("", "", {}),
    (
        "n: int, label: str, ratio: float, act: Optional[Callable[[int], float]] = None, flag: bool = True, "
        "other: datatype.dtype = datatype.int8",
        "a: (n, 2 * n), b: (n // 2 + 3,) if n > 1, c?: (), d: (n,) if flag",
        {"class_name": "Averylongclassnamethatisjustaslongasthetemplateadmits0000000"},
    ),
    (
        "dtype: datatype.dtype = datatype.bfloat16, sizes: Sequence[int] = (1, 2), factor: float = 0.5",
        "table: sizes",
        {"__constant_fields": "dtype,sizes"},
    ),
    (
        "first_long_switch: bool = True, second_long_switch: bool = False, third_long_switch: bool = True, "
        "one_rather_long_argument: int = 1, another_rather_long_argument: int = 2, "
        "a_third_rather_long_argument: int = 3",
        "",
        {},
    ),
]


@pytest.fixture(scope="module")
def rendered(template, tmp_path_factory):
    """Every recipe in both modes with several signatures, for a checkout and for a project of one's own."""
    from cookiecutter.main import cookiecutter

    folder = tmp_path_factory.mktemp("rendered")
    config = folder / "config.yaml"
    config.write_text(f"cookiecutters_dir: {folder / 'clones'}\nreplay_dir: {folder / 'replay'}\n", "utf-8")
    files = []
    packages = ["nvtripy.frontend.module", "my_layers"]
    variants = itertools.product(RECIPES, ["complete", "exercise"], enumerate(SIGNATURES), packages)
    for number, (recipe, mode, (which, (arguments, parameters, answers)), package) in enumerate(variants):
        added = extended(recipe, arguments, parameters) if arguments else {}
        extra = {"class_name": "Layer", "recipe": recipe, "mode": mode, "package": package, **added, **answers}
        output = folder / f"{number}-{recipe}-{mode}-{which}-{package}"
        # Without the hooks, which would refuse a package of nvtripy outside a checkout.
        cookiecutter(
            str(template),
            no_input=True,
            extra_context=extra,
            output_dir=str(output),
            config_file=str(config),
            accept_hooks=False,
        )
        files += sorted(output.rglob("*.py"))
    return files


def test_every_variant_is_rendered(rendered):
    assert len(rendered) == len(RECIPES) * 2 * len(SIGNATURES) * 2 * 2


def test_rendered_files_are_clean_under_black(rendered):
    command = [sys.executable, "-m", "black", "--quiet", "--diff", "--line-length=120", *map(str, rendered)]

    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)

    assert (result.stdout, result.returncode) == ("", 0), result.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the oldest black that counts does not run on it")
@pytest.mark.parametrize("version", ["24.1.0", "26.1.0"])
def test_rendered_files_are_clean_under_upstreams_versions_of_black(rendered, tmp_path, version):
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", f"black=={version}"], check=True)
    command = [str(python), "-m", "black", "--quiet", "--diff", "--line-length=120", *map(str, rendered)]

    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)

    assert (result.stdout, result.returncode) == ("", 0), result.stderr


def test_rendered_files_are_ascii_with_plain_newlines_and_no_banned_imports(rendered):
    for path in rendered:
        text = path.read_bytes().decode("ascii")
        assert "\r" not in text
        assert text.endswith("\n")
        assert not text.startswith("\n")
        if not path.name.startswith("test_"):
            assert not re.search(r"(import|from)\s+(numpy|cupy|pickle)", text), path


def test_rendered_files_use_every_name_that_they_import(rendered):
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F", "--ignore=F821", *map(str, rendered)]

    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)

    assert result.returncode == 0, result.stdout


def test_rendered_modules_have_upstreams_order_of_decorators_and_documented_fields(rendered):
    for path in (path for path in rendered if not path.name.startswith("test_")):
        tree = ast.parse(path.read_text("ascii"))
        (cls,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        decorators = [ast.unparse(decorator).partition("(")[0] for decorator in cls.decorator_list]
        assert decorators == ["export.public_api", "dataclass", "constant_fields"]
        for node, following in itertools.pairwise(cls.body):
            if isinstance(node, ast.AnnAssign):
                assert isinstance(following, ast.Expr), f"{path}: {ast.unparse(node)} is not documented"
        fields = {node.target.id for node in cls.body if isinstance(node, ast.AnnAssign)}
        (init,) = [node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
        assigned = {
            target.attr
            for node in ast.walk(init)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Attribute)
        }
        assert fields == assigned
        assert ast.unparse(init.body[1]) == "super().__init__()"


def test_examples_fit_into_eighty_columns(rendered):
    for path in (path for path in rendered if not path.name.startswith("test_")):
        example = path.read_text("ascii").partition(":linenos:")[2].partition('"""')[0]
        assert all(len(line) - 12 <= 80 for line in example.splitlines()), path
