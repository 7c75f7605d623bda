"""How much the main job costs beside what no tool could save: the emitted test alone, under pytest.

`uv run python benchmarks/main_job.py [RUNS]` prints medians of whole processes, taken in turn in one run.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from harness import Cookiecutter, copy_template, git, make_checkout  # noqa: E402


def seconds(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Run a command, which must succeed, and return its wall time."""
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        template, checkout, home = folder / "tripy-module", folder / "tripy", folder / "home"
        copy_template(template)
        make_checkout(checkout)
        home.mkdir()
        config = f"cookiecutters_dir: {home / 'clones'}\nreplay_dir: {home / 'replay'}\n"
        (home / "config.yaml").write_text(config, encoding="utf-8")
        cookiecutter = Cookiecutter(str(template), home)
        environment = cookiecutter.environment()
        source = template / "src"
        test = "tests/frontend/module/test_rms_norm.py"
        pytest = [sys.executable, "-m", "pytest", "-q", "--rootdir=.", test, "-c"]
        shallow = [*pytest, str(source / "tripy_module" / "isolated.ini")]
        deep = [*pytest, os.devnull, "--noconftest", "-p", "tripy_cpu.pytest_plugin", "-p", "no:cacheprovider"]
        path = {"PYTHONPATH": os.pathsep.join([str(checkout), str(source)]), "PYTHONDONTWRITEBYTECODE": "1"}

        alone = "emitted test alone"
        labels = ("main job", "main job, run_tests=no", alone, f"{alone}, pytest's stack")
        times: dict[str, list[float]] = {label: [] for label in labels}
        for _ in range(runs):
            for label, answers in (("main job, run_tests=no", ["run_tests=no"]), ("main job", [])):
                times[label].append(seconds(cookiecutter.command("--no-input", *answers), checkout, environment))
                if answers:
                    git(checkout, "reset", "--quiet", "--hard")
                    git(checkout, "clean", "--quiet", "--force", "-d")
            for label, command in ((alone, shallow), (f"{alone}, pytest's stack", deep)):
                times[label].append(seconds(command, checkout, environment | path))
            git(checkout, "reset", "--quiet", "--hard")
            git(checkout, "clean", "--quiet", "--force", "-d")
            shutil.rmtree(home / "replay")

    floor = statistics.median(times[alone])
    for label, measured in times.items():
        median = statistics.median(measured)
        print(f"{label:34} {median:6.2f} s  {median / floor:5.2f} x the emitted test alone  (median of {runs})")


if __name__ == "__main__":
    main()
