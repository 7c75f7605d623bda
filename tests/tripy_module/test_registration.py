import itertools
import sysconfig
from pathlib import Path

import pytest
from harness import installed_nvtripy
from hypothesis import given, settings
from hypothesis import strategies as st

from tripy_module.registration import RegistrationError, add, is_registered, line_of, remove

CLASS = ("pkg", "rms_norm", "RMSNorm")
IMPORT = "from pkg.rms_norm import RMSNorm\n"

# What an `__init__.py` holds before and after.
TABLE = {
    "empty": ("", IMPORT),
    "blank lines": ("\n\n", IMPORT + "\n\n"),
    "docstring": ('"""Layers."""\n', '"""Layers."""\n\n' + IMPORT),
    "docstring without an end of line": ('"""Layers."""', '"""Layers."""\n\n' + IMPORT.rstrip("\n")),
    "license": ("#\n# License\n#\n", "#\n# License\n#\n\n" + IMPORT),
    "license and code": ("# License\n\nVALUE = 1\n", "# License\n\n" + IMPORT + "\nVALUE = 1\n"),
    "comment on code": ("# The value\nVALUE = 1\n", IMPORT + "# The value\nVALUE = 1\n"),
    "shebang and encoding": (
        "#!/bin/python\n# coding: utf-8\nV = 1\n",
        "#!/bin/python\n# coding: utf-8\n" + IMPORT + "V = 1\n",
    ),
    "future": (
        "from __future__ import annotations\n\nX = 1\n",
        "from __future__ import annotations\n\n" + IMPORT + "\nX = 1\n",
    ),
    "sorted siblings": (
        "from pkg.affine import Affine\nfrom pkg.zeta import Zeta  # last\n",
        "from pkg.affine import Affine\n" + IMPORT + "from pkg.zeta import Zeta  # last\n",
    ),
    "unsorted siblings": (
        "from pkg.zeta import Zeta\nfrom pkg.affine import Affine\n",
        "from pkg.zeta import Zeta\nfrom pkg.affine import Affine\n" + IMPORT,
    ),
    "the base class stays first": (
        "from pkg.module import Module\nfrom pkg.affine import Affine\n",
        "from pkg.module import Module\nfrom pkg.affine import Affine\n" + IMPORT,
    ),
    "relative siblings": (
        "from .affine import Affine\nfrom .zeta import Zeta\n",
        "from .affine import Affine\nfrom .rms_norm import RMSNorm\nfrom .zeta import Zeta\n",
    ),
    "siblings over several lines": (
        "from pkg.a import (\n    A,\n    B,\n)\nfrom pkg.z \\\n    import Z\n",
        "from pkg.a import (\n    A,\n    B,\n)\n" + IMPORT + "from pkg.z \\\n    import Z\n",
    ),
    "siblings below code": ("X = 1\nfrom pkg.a import A\n", "X = 1\nfrom pkg.a import A\n" + IMPORT),
    "siblings below code that needs the name": (
        "import os\n\nprint(dir())\nfrom pkg.a import A\n",
        "import os\n\n" + IMPORT + "\nprint(dir())\nfrom pkg.a import A\n",
    ),
    "siblings in a try only": (
        "import os\n\ntry:\n    from pkg.a import A\nexcept ImportError:\n    A = None\n",
        "import os\n\n" + IMPORT + "\ntry:\n    from pkg.a import A\nexcept ImportError:\n    A = None\n",
    ),
    "siblings for type checkers only": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from pkg.a import A\n",
        "from typing import TYPE_CHECKING\n\n" + IMPORT + "\nif TYPE_CHECKING:\n    from pkg.a import A\n",
    ),
    "semicolons": ("import os; X = 1\n", "import os; X = 1\n\n" + IMPORT),
    "list": (
        "from pkg.a import A\n\n__all__ = ['A']\n",
        "from pkg.a import A\n" + IMPORT + "\n__all__ = ['A', 'RMSNorm']\n",
    ),
    "empty list": ("__all__ = []\n", IMPORT + '__all__ = ["RMSNorm"]\n'),
    "tuple": (
        'from pkg.a import A\n\n__all__ = ("A", "Z")\n',
        "from pkg.a import A\n" + IMPORT + '\n__all__ = ("A", "RMSNorm", "Z")\n',
    ),
    "bare tuple": ('__all__ = "A", "B"\n', IMPORT + '__all__ = "A", "B", "RMSNorm"\n'),
    "annotated list": ('__all__: list[str] = ["A"]\n', IMPORT + '__all__: list[str] = ["A", "RMSNorm"]\n'),
    "list that is added to": (
        'import a\n\n__all__ = a.__all__\n__all__ += ["A"]\n',
        "import a\n\n" + IMPORT + '\n__all__ = a.__all__\n__all__ += ["A", "RMSNorm"]\n',
    ),
    "list over several lines": (
        '__all__ = [\n    "A",  # first\n    "Z",\n]\n',
        IMPORT + '__all__ = [\n    "A",  # first\n    "RMSNorm",\n    "Z",\n]\n',
    ),
    "list over several lines without a last comma": (
        '__all__ = [\n    "A",\n    "B"  # last\n]\n',
        IMPORT + '__all__ = [\n    "A",\n    "B",  # last\n    "RMSNorm"\n]\n',
    ),
    "unsorted list": ('__all__ = ["Z", "A"]\n', IMPORT + '__all__ = ["Z", "A", "RMSNorm"]\n'),
    "computed from names": (
        "__all__ = [n for n in dir() if n[0] != '_']\n",
        IMPORT + "__all__ = [n for n in dir() if n[0] != '_']\n",
    ),
    "form feed": ('"""Doc."""\n\x0c\nX = 1\n', '"""Doc."""\n\n' + IMPORT + "\x0c\nX = 1\n"),
}
ENDINGS = ["\n", "\r\n", "\r"]


@pytest.mark.parametrize("ending", ENDINGS, ids=repr)
@pytest.mark.parametrize(("before", "after"), TABLE.values(), ids=TABLE)
def test_the_import_lands_in_its_place_and_leaves_no_trace(before, after, ending):
    # A file without any end of line has no style of its own.
    source, expected = (text.replace("\n", ending if "\n" in before else "\n").encode() for text in (before, after))

    assert add(source, *CLASS) == expected
    assert add(expected, *CLASS) == expected
    assert remove(expected, *CLASS) == source


@pytest.mark.parametrize(
    "source",
    [
        b'\xef\xbb\xbf"""Doc."""\n',
        '# -*- coding: latin-1 -*-\n"""Caf\u00e9."""\n'.encode("latin-1"),
        '"""Caf\u00e9 \U0001f600."""\nX = "\u00e9"; from pkg.a import A\n'.encode(),
    ],
    ids=["byte order mark", "latin-1", "utf-8"],
)
def test_the_encoding_is_kept(source):
    after = add(source, *CLASS)

    assert after.replace(IMPORT.encode(), b"").replace(b"\n", b"") == source.replace(b"\n", b"")
    assert remove(after, *CLASS) == source


def test_upstreams_init_gains_one_line_below_the_base_class():
    source = (installed_nvtripy() / "frontend" / "module" / "__init__.py").read_bytes()

    after = add(source, "nvtripy.frontend.module", "affine", "Affine")

    assert after == source.rstrip(b"\n") + b"\nfrom nvtripy.frontend.module.affine import Affine\n"
    assert remove(after, "nvtripy.frontend.module", "affine", "Affine") == source


def test_a_file_is_created_where_there_is_none_and_goes_with_its_last_class():
    first = add(None, *CLASS)
    second = add(first, "pkg", "affine", "Affine")

    assert first == b'"""Neural-network modules for nvtripy."""\n\nfrom pkg.rms_norm import RMSNorm\n'
    assert remove(second, *CLASS) == add(None, "pkg", "affine", "Affine")
    assert remove(first, *CLASS) is None
    assert remove(add(b"", *CLASS), *CLASS) == b""


@pytest.mark.parametrize(
    "registered",
    [
        "from .rms_norm import RMSNorm\n",
        "from pkg.rms_norm import RMSNorm as RMSNorm\n",
        "from pkg.rms_norm import (\n    RMSNorm,\n    rms_norm,\n)\n",
    ],
)
def test_another_form_of_the_import_will_do(registered):
    assert add(registered.encode(), *CLASS) == registered.encode()
    assert is_registered(registered.encode(), *CLASS)
    assert line_of(b"\n" + registered.encode(), *CLASS) == 2


def test_out_of_a_combined_import_only_the_class_is_taken():
    assert remove(b"from .rms_norm import RMSNorm, helper\n", *CLASS) == b"from .rms_norm import helper\n"
    assert remove(b"from .rms_norm import helper, RMSNorm\n", *CLASS) == b"from .rms_norm import helper\n"


def test_what_is_not_registered_stays_as_it_is():
    assert remove(b"import os\n", *CLASS) == b"import os\n"
    assert line_of(b"import os\n", *CLASS) is None


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (b"from pkg import (\n", "line 1: "),
        (b"x = 1\n\x00", "null byte"),
        (b"# coding: nonsense\n", "nonsense"),
        (b"\xff\n", "encoding declaration"),
        (b"import os\nfrom other import RMSNorm\n", "line 2: RMSNorm is something else already"),
        (b"import torch as RMSNorm\n", "line 1: RMSNorm is something else already"),
        (b"class RMSNorm: pass\n", "line 1: RMSNorm is something else already"),
        (b"def RMSNorm(): pass\n", "line 1: RMSNorm is something else already"),
        (b"RMSNorm = None\n", "line 1: RMSNorm is something else already"),
        (b"try:\n    from fast import RMSNorm\nexcept ImportError:\n    pass\n", "line 2: RMSNorm is"),
        (b"if 1:\n    RMSNorm: int = 1\n", "line 2: RMSNorm is something else already"),
        (b"import a\n__all__ = a.names()\n", "line 2: __all__ is computed"),
    ],
)
def test_what_cannot_be_patched_safely_is_refused_in_one_line(source, problem):
    with pytest.raises(RegistrationError) as error:
        add(source, *CLASS)

    assert problem in str(error.value)
    assert "\n" not in str(error.value)


MODULES = [("pkg", "affine", "Affine"), CLASS, ("pkg", "zeta", "Zeta")]
PIECES = [
    "import os\n", "from typing import Any\n", "from pkg.m import M\n", "from pkg.a import A\n", "from .b import B\n",
    "from pkg.z import (\n    Z,  # the last\n)\n", "X = 1\n", "# a comment\n", "\n", "\n\n", "import sys; Y = 2\n",
    "try:\n    import fast\nexcept ImportError:\n    fast = None\n", "if True:\n    from pkg.t import T\n",
    "def f():\n    from pkg.l import L\n\n    return L\n", "__all__ = ['A', 'M']\n",
    '__all__ = [\n    "B",\n    "A"\n]\n',
    '__all__ += ("M",)\n', "print(sorted(globals()))\n", "S = '''\nfrom pkg.s import S\n'''\n",
]  # fmt: skip


@st.composite
def init_files(draw):
    head = draw(st.sampled_from(["", '"""Doc."""\n', "# License\n#\n", "#!/bin/python\n"]))
    text = head + "".join(draw(st.lists(st.sampled_from(PIECES), max_size=7)))
    if draw(st.booleans()):
        text = text.rstrip("\n")
    return text.replace("\n", draw(st.sampled_from(ENDINGS))).encode()


@settings(max_examples=200, deadline=None)
@given(init_files())
def test_adding_in_any_order_and_removing_in_any_order_restores_every_file(source):
    try:
        alone = {module: add(source, *module) for module in MODULES}
    except RegistrationError:
        return
    for module, after in alone.items():
        assert add(after, *module) == after
        assert remove(after, *module) == source
        assert is_registered(after, *module)
    for order in itertools.permutations(MODULES):
        everything = source
        for module in order:
            everything = add(everything, *module)
        for gone in MODULES:
            others = source
            for module in order:
                if module != gone:
                    others = add(others, *module)
            assert remove(everything, *gone) == others


@pytest.mark.slow
def test_the_init_files_of_the_environment_are_restored_byte_for_byte():
    paths = sorted(Path(sysconfig.get_path("purelib")).rglob("__init__.py"))[::2]
    refused = []
    for path in paths:
        source = path.read_bytes()
        try:
            after = add(source, path.parent.name, "rms_norm", "TripyRMSNorm")
        except RegistrationError as error:
            refused.append(f"{path}: {error}")
            continue
        assert add(after, path.parent.name, "rms_norm", "TripyRMSNorm") == after, path
        assert remove(after, path.parent.name, "rms_norm", "TripyRMSNorm") == source, path

    assert len(paths) > 100
    assert len(refused) < len(paths) / 20, refused
