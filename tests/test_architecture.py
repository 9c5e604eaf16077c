"""The rooms of the house, as a program: who may import whom, and how long things may get."""

import ast
from pathlib import Path

import pytest

import polystick

SOURCE = Path(__file__).parents[1] / "src" / "polystick"
FILES = sorted(SOURCE.rglob("*.py"))
PUBLIC = {*polystick.__all__, "__version__"}

MAY_IMPORT = {
    "kernels": set(),
    "keys": {"kernels"},
    "trees": {"kernels"},
    "decomposition": {"kernels", "trees"},
    "polyagamma": {"kernels"},
    "conjugate": {"kernels"},
    "conjugate_dynamics": {"conjugate"},
    "population": {"conjugate", "kernels"},
    "association": set(),
    "augmentation": {"decomposition", "polyagamma", "kernels"},
    "gaussians": {"kernels"},
    "covariances": {"gaussians", "validation"},
    "models": {
        "alignment",
        "association",
        "augmentation",
        "conjugate",
        "conjugate_dynamics",
        "decomposition",
        "gaussians",
        "kernels",
        "keys",
        "polyagamma",
        "population",
        "scores",
    },
    "validation": set(),
    "inference": {"keys", "validation"},
    "alignment": set(),
    "coherence": set(),
    "scores": set(),
    "estimators": {
        "alignment",
        "association",
        "coherence",
        "conjugate",
        "conjugate_dynamics",
        "covariances",
        "decomposition",
        "inference",
        "models",
        "population",
        "scores",
        "validation",
    },
    "modelling": {  # the public door: what is behind it, and nothing of ours in front
        "augmentation",
        "conjugate",
        "conjugate_dynamics",
        "decomposition",
        "gaussians",
        "inference",
        "keys",
        "scores",
        "validation",
    },
    "baselines": {
        "alignment",
        "augmentation",
        "conjugate",
        "conjugate_dynamics",
        "covariances",
        "decomposition",
        "estimators",
        "gaussians",
        "inference",
        "kernels",
        "keys",
        "models",
        "polyagamma",
        "scores",
        "validation",
    },
    "datasets": set(),
    "layout": set(),
    "plots": {"layout"},
    # the porch: public names only
    "paper": {*PUBLIC, "baselines", "covariances", "scores"},
    "commands": {*PUBLIC, "demo", "paper"},
    "demo": {"CorrelatedTopicModel", "Gibbs", "commands", "datasets"},
    "cli": {"demo"},
    "__main__": {"cli"},
}

# what a room must not know, beyond our own rooms
FOREIGN = {
    "kernels": {"sklearn", "xarray", "pandas", "matplotlib", "scipy"},
    "models": {"sklearn", "xarray", "pandas", "matplotlib", "pathlib", "json"},
    "gaussians": {"sklearn", "xarray", "pandas", "matplotlib"},
    "inference": {"matplotlib", "pandas"},
    "estimators": {"numba", "matplotlib"},
    "modelling": {"numba", "matplotlib"},
}

LONGEST_FILE = 520  # a class is never cut in two to fit
LONGEST_BODY = 60
MOST_ARGUMENTS = 10


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path):
    """Yield (package, room or name) of each import in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple([*alias.name.split("."), None][:2])
        elif isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            assert node.level == 0, "imports are absolute"
            yield from (
                [tuple(parts[:2])] if len(parts) > 1 else [(parts[0], a.name) for a in node.names]
            )


def named(path):
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_imports_respect_the_rooms(path):
    room = room_of(path)
    if room == "__init__":
        return
    assert room in MAY_IMPORT, f"{room} is not declared in the table of rooms"
    ours = {name for package, name in imports(path) if package == "polystick"} - {room}
    assert ours <= MAY_IMPORT[room]


@pytest.mark.parametrize("path", FILES, ids=named)
def test_rooms_know_nothing_of_what_they_must_not(path):
    packages = {package for package, _ in imports(path)}
    assert not packages & FOREIGN.get(room_of(path), set())


def test_the_table_has_no_room_that_is_gone():
    assert set(MAY_IMPORT) == {room_of(path) for path in FILES} - {"__init__"}


@pytest.mark.parametrize("path", FILES, ids=named)
def test_files_and_functions_stay_short(path):
    source = path.read_text()
    assert source.count("\n") <= LONGEST_FILE
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
    assert {f.name: n for f in functions if (n := body_length(f)) > LONGEST_BODY} == {}
    many = {f.name for f in functions if len(f.args.args) > MOST_ARGUMENTS}
    assert many == set()


def body_length(function):
    docstring = function.body[0] if ast.get_docstring(function) else None
    skipped = docstring.end_lineno - docstring.lineno + 1 if docstring else 0
    return function.end_lineno - function.lineno + 1 - skipped


def test_the_walk_sees_forbidden_imports(tmp_path):
    file = tmp_path / "sneaky.py"
    file.write_text("import sklearn.base\nfrom polystick.models import topics\n")
    assert list(imports(file)) == [("sklearn", "base"), ("polystick", "models")]
