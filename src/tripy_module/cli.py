"""The command `tripy-module`: what can be done with modules once they are generated."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tripy_module import interpreter, project, records, report, testing
from tripy_module.errors import UserError, one_line


class _Command(click.Group):
    """Ends with the one line of an error that a user can act on."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except (UserError, OSError) as error:
            report.show_error(one_line(error))
        return context.exit(1)


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tripy-module")
def main() -> None:
    """Look after nvtripy modules that `cookiecutter gh:org/tripy-module` has generated."""


@main.command()
@click.argument("modules", nargs=-1, metavar="[MODULE]...")
@click.option("--project", "folder", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path(),
              help="The tripy checkout or your project; found from the current folder upwards by default.")  # fmt: skip
@click.option("--interpreter", "python", default="", help="The Python that has nvtripy; looked for by default.")
@click.option("--backend", type=click.Choice(interpreter.BACKENDS), default="auto", show_default=True,
              help="TensorRT, or tripy_cpu, which needs no GPU.")  # fmt: skip
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), default=600.0, show_default=True,
              help="Seconds after which the tests are ended.")  # fmt: skip
def test(modules: tuple[str, ...], folder: Path, python: str, backend: str, time_limit: float) -> None:
    """Run the emitted tests of all modules, or of those named, and exit with 1 unless they pass."""
    root = project.detect(folder.resolve())
    if root is None:
        raise UserError(
            f"{folder.resolve()} is in no tripy checkout and no project with generated modules; go there first"
        )
    packages = records.packages(root)
    unknown = [module for module in modules if module not in packages]
    if unknown or not packages:
        known = ", ".join(packages) or "there is none yet"
        raise UserError(f"{root} has no record of {', '.join(unknown) or 'a module'}; recorded: {known}")
    tests = [root / project.destination(packages[module], module).test for module in modules or packages]
    checkout = project.is_checkout(root)
    found = interpreter.find(python, root, checkout=checkout, backend=backend)
    report.show_progress(report.testing_with(found))
    outcome = testing.run(found, root, tests, checkout=checkout, time_limit=time_limit)
    report.show_outcome(outcome)
    sys.exit(1 if outcome.failed or outcome.errors else 0)
