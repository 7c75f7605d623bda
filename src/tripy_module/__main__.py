"""`python -m tripy_module` is the command `tripy-module`."""

from tripy_module.cli import main

main(prog_name="tripy-module")
