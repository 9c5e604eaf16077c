"""What a forge, pre-commit and readers of CITATION.cff are told is what the Makefile and the package do."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text()


def test_the_workflow_does_what_our_own_ci_does():
    ours = re.findall(r"^make (\S+)$", (ROOT / ".ci/run").read_text(), re.M)
    theirs = re.findall(r"target: \[?([\w-]+)", WORKFLOW)
    assert set(theirs) == set(ours) == {"check", "test", "nosimd", "nojit-short", "docs"}
    assert all(re.search(rf"^{target}:", MAKEFILE, re.M) for target in ours)


def test_the_workflow_tries_the_versions_that_the_package_names():
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    tried = re.search(r"python: \[(.*)\]", WORKFLOW)[1]
    assert set(named) <= set(re.findall(r"3\.\d+", tried))
    assert PROJECT["requires-python"] == f">={min(named, key=lambda version: int(version[2:]))}"


def test_the_files_of_short_suites_are_there():
    patterns = re.findall(r"patsubst %,(\S+),([\w ]+)\)", MAKEFILE)
    files = [form.replace("%", name) for form, names in patterns for name in names.split()]
    files += re.findall(r"tests/[\w/]+\.py", MAKEFILE)
    assert len(files) > 12
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_pre_commit_asks_no_host():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (\S+)", hooks) == ["local"]
    assert {"ruff check", "ruff format", "mypy"} <= set(re.findall(r"name: (.+)", hooks))


def test_the_citation_is_of_this_package():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"license: {PROJECT['license']}" in citation
    assert PROJECT["urls"]["Paper"] in citation
