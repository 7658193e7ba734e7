"""Run python-blosc2's own storage tests on superchunk, and compare what fails with the table of deliberate differences.

::

    .venv/bin/python tests/peer/run.py [-n 2]

The tests come with the source distribution of python-blosc2. pip fetches it, checks it against the hash in
`requirements/peer.txt`, and this script keeps the tests under `target/peer`; nothing of them is part of this project.
`tests/peer/differences.toml` names the files that are run, the tests that are left out, and the tests that fail by
decision, each group with its reason. A failure that is not in the table is an error, and so is a test in the table
that passes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "target" / "peer"
TABLE = ROOT / "tests" / "peer" / "differences.toml"
MARKS = "not network and not heavy and not tui"


def fetch(version: str) -> Path:
    """Return the folder of the tests, fetched if they are not there."""
    folder = KEPT / f"blosc2-{version}"
    if not (folder / "tests").is_dir():
        KEPT.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        pins = ["--no-binary", "blosc2", "--require-hashes", "-r", str(ROOT / "requirements" / "peer.txt")]
        subprocess.run([*pip, *pins, "--dest", str(KEPT)], check=True)
        with tarfile.open(KEPT / f"blosc2-{version}.tar.gz") as archive:
            inside = f"blosc2-{version}/tests/"
            archive.extractall(KEPT, [one for one in archive if one.name.startswith(inside)], filter="data")
    return folder


def run(folder: Path, table: dict[str, Any], workers: int) -> dict[str, str]:
    """Return how each test ended: "passed", "failed" or "skipped"."""
    report = KEPT / "report.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "--tb=line", "-m", MARKS, "-n", str(workers), "--dist", "loadfile", "--timeout", "120"]
    options += ["-p", "plugin", "-p", "no:unraisableexception", "-p", "no:cacheprovider"]
    options += ["-c", os.devnull, "--rootdir", str(folder), "-W", "error", "-W", "ignore::UserWarning"]
    options += ["-o", "junit_family=xunit1", f"--junitxml={report}"]
    options += [f"--deselect={name}" for group in table["left_out"] for name in group["tests"]]
    path = os.pathsep.join([str(TABLE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    files = [name for group in table["files"].values() for name in group]
    command = [sys.executable, "-m", "pytest", *options, *files]
    subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, check=False)
    ended: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):
        file, place = case.get("file", ""), case.get("classname", "")
        inside = place[len(file.removesuffix(".py").replace("/", ".")) + 1 :]  # the class of the test, if it has one
        name = "::".join(part for part in (file, inside, case.get("name")) if part)
        kinds = {child.tag for child in case}
        ended[name] = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
    return ended


def main() -> int:
    """Run the tests; return 0 if just the deliberate differences fail."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("-n", type=int, default=2, help="processes that run tests")
    workers = options.parse_args().n
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    ended = run(fetch(table["version"]), table, workers)
    decided = {test for one in table["difference"] for test in one["tests"]}
    failed = {name for name, how in ended.items() if how == "failed"}
    for name in sorted(failed - decided):
        print(f"not in the table of differences: {name}")
    for name in sorted(decided - failed):
        print(f"in the table of differences, but {ended.get(name, 'not run')}: {name}")
    counts = {how: sum(1 for each in ended.values() if each == how) for how in ("passed", "failed", "skipped")}
    print(
        f"python-blosc2 {table['version']}: {len(ended)} tests, {counts['passed']} pass, {counts['skipped']} are"
        f" skipped, {counts['failed']} differ for {len(table['difference'])} reasons"
    )
    return 0 if failed == decided and len(ended) > table["at_least"] else 1


if __name__ == "__main__":
    sys.exit(main())
