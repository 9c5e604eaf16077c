"""The rooms of the house, as a program: who may import whom, and how long things may get."""

import ast
from pathlib import Path

import pytest

import polystick

SOURCE = Path(__file__).parents[1] / "src" / "polystick"
FILES = sorted(SOURCE.rglob("*.py"))
PUBLIC = {*polystick.__all__, "__version__"}

MAY_IMPORT = {
    "arguments": set(),  # types that signatures name
    "kernels": set(),
    "keys": {"kernels"},
    "trees": {"kernels"},
    "decomposition": {"kernels", "trees"},
    "polyagamma": {"kernels"},
    "conjugate": {"kernels"},
    "conjugate_dynamics": {"conjugate", "kernels"},
    "population": {"conjugate", "kernels"},
    "association": set(),
    "design": {"validation"},
    "augmentation": {"decomposition", "polyagamma", "kernels"},
    "gaussians": {"kernels"},
    "covariances": {"arguments", "gaussians", "validation"},
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
    "validation": {"sparse_tables"},
    "sparse_tables": set(),
    "folders": set(),
    "corpus": {"folders"},
    "clusters": {"inference", "keys", "validation"},
    "inference": {"folders", "keys", "validation"},
    "storage": {
        "arguments",
        "conjugate",
        "conjugate_dynamics",
        "decomposition",
        "folders",
        "inference",
        "validation",
    },
    "warmup": {"inference"},
    "alignment": set(),
    "coherence": {"arguments"},
    "scores": {"arguments"},
    "texts": set(),
    "estimators": {
        "alignment",
        "arguments",
        "association",
        "coherence",
        "corpus",
        "conjugate",
        "conjugate_dynamics",
        "covariances",
        "decomposition",
        "design",
        "inference",
        "models",
        "population",
        "report",
        "scores",
        "sparse_tables",
        "storage",
        "texts",
        "validation",
        "warmup",
    },
    "modelling": {  # the public door: what is behind it, and the face that all models have
        "augmentation",
        "conjugate",
        "conjugate_dynamics",
        "decomposition",
        "estimators",
        "gaussians",
        "inference",
        "keys",
        "scores",
        "validation",
    },
    "baselines": {
        "alignment",
        "arguments",
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
    "printable": set(),
    "report": {"layout"},
    "plots": {"layout", "printable"},
    # the porch: public names only
    "paper": {*PUBLIC, "baselines", "covariances", "scores"},
    "commands": {
        *PUBLIC,
        "corpus",
        "demo",
        "folders",
        "paper",
        "printable",
        "sparse_tables",
        "storage",
        "warmup",
    },
    "demo": {"CorrelatedTopicModel", "Gibbs", "commands", "datasets", "warm_up"},
    "cli": {"demo", "printable"},
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

LONGEST_FILE = 530  # a class is never cut in two to fit
LONGEST_BODY = 60
MOST_ARGUMENTS = 10

# Coupling, counted over the rooms; budgets are upper bounds, to be lowered and never raised.
# `x: Any` fields of classes: what one of them holds is said nowhere
MOST_ANY_FIELDS = 20
# parts of tuples taken by position: `statistics[:4]`, `*self[1:]`
MOST_TUPLE_SLICES = 6
# tuples of more than WIDEST_TUPLE parts in one argument of a call, or taken apart from one argument
WIDEST_TUPLE = 5
MOST_WIDE_TUPLES = 1
# methods that replace one of a base class of ours
MOST_OVERRIDES = 55


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


def test_nothing_unpickles():
    """What Dask does with messages is its own; files are never unpickled, by any room."""
    unpickling = {"pickle", "cloudpickle", "joblib", "shelve", "marshal"}
    assert {named(p) for p in FILES if unpickling & {package for package, _ in imports(p)}} == set()


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


# ---- coupling


def any_fields(tree):
    """Yield the fields of classes that are annotated with Any and nothing else."""
    for klass in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        for node in klass.body:
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "Any":
                yield f"{klass.name}.{ast.unparse(node.target)}"


def tuple_slices(tree):
    """Yield slices with constant ends of what is unpacked, by a star or to several names, or returned.

    Slices of arrays go to one name or into arithmetic; an unpacked one is a tuple whose parts have a place
    and no name.
    """
    for node in ast.walk(tree):
        several = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
        if (several or isinstance(node, ast.Starred | ast.Return)) and is_tuple_slice(node.value):
            yield ast.unparse(node.value)


def is_tuple_slice(node):
    """Tell `x[:2]`, `x[1:]` and the like; shapes and strings of names are what they are for."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return False
    ends = [end for end in (node.slice.lower, node.slice.upper, node.slice.step) if end is not None]
    is_shape = isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "dims")
    return bool(ends) and not is_shape and all(is_whole(end) for end in ends)


def is_whole(node):
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def wide_tuples(tree):
    """Yield tuples of many parts that go through one argument: written in a call, or taken apart."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from (
                f"{ast.unparse(node.func)}(...)"
                for argument in node.args
                if isinstance(argument, ast.Tuple) and len(argument.elts) > WIDEST_TUPLE
            )
        elif isinstance(node, ast.FunctionDef):
            arguments = {a.arg for a in node.args.args}
            for part in (n for n in ast.walk(node) if isinstance(n, ast.Assign)):
                yield from (
                    f"{node.name}({value.id})"
                    for target, value in assigned(part)
                    if isinstance(target, ast.Tuple)
                    and len(target.elts) > WIDEST_TUPLE
                    and isinstance(value, ast.Name)
                    and value.id in arguments
                )


def assigned(node):
    """Return what is assigned to what, one by one if both sides are tuples."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def overrides(trees):
    """Yield methods of which a base class, here or in another file, has one of the same name."""
    classes = {n.name: n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}

    def methods(klass):
        return {n.name for n in klass.body if isinstance(n, ast.FunctionDef)}

    def inherited(klass, seen):
        for base in (ast.unparse(b).split(".")[-1] for b in klass.bases):
            if base in classes and base not in seen:
                yield from methods(classes[base])
                yield from inherited(classes[base], {*seen, base})

    for klass in classes.values():
        again = methods(klass) & set(inherited(klass, {klass.name}))
        yield from (f"{klass.name}.{name}" for name in sorted(again - {"__init__"}))


def counted(count):
    """Return all that a counter finds in the house, but for the porch's pictures of the paper."""
    return [
        f"{named(path)}: {found}"
        for path in FILES
        if room_of(path) != "paper"
        for found in count(ast.parse(path.read_text()))
    ]


@pytest.mark.parametrize(
    ("count", "most"),
    [
        (any_fields, MOST_ANY_FIELDS),
        (tuple_slices, MOST_TUPLE_SLICES),
        (wide_tuples, MOST_WIDE_TUPLES),
    ],
    ids=["any fields", "tuple slices", "wide tuples"],
)
def test_coupling_stays_within_its_budget(count, most):
    found = counted(count)
    assert len(found) <= most, "\n".join(found)


def test_methods_are_seldom_replaced():
    found = list(overrides([ast.parse(path.read_text()) for path in FILES]))
    assert len(found) <= MOST_OVERRIDES, "\n".join(found)


def test_the_counters_see_coupling():
    source = """
class Base:
    def draw(self): ...
    def keep(self): ...

class Model(Base):
    prior: Any
    level: Any = None
    size: int

    def draw(self, statistics, law):
        n, xx, *rest = statistics[:4]
        a, b, c, d, e, f = law
        x = array[1:]
        n_rows, width = array.shape[:2]
        update(*law[2:], (a, b, c, d, e, f), (a, b))
        return self[1:]
"""
    tree = ast.parse(source)
    assert list(any_fields(tree)) == ["Model.prior", "Model.level"]
    assert sorted(tuple_slices(tree)) == ["law[2:]", "self[1:]", "statistics[:4]"]
    assert sorted(wide_tuples(tree)) == ["draw(law)", "update(...)"]
    assert list(overrides([tree])) == ["Model.draw"]


def body_length(function):
    docstring = function.body[0] if ast.get_docstring(function) else None
    skipped = docstring.end_lineno - docstring.lineno + 1 if docstring else 0
    return function.end_lineno - function.lineno + 1 - skipped


def test_the_walk_sees_forbidden_imports(tmp_path):
    file = tmp_path / "sneaky.py"
    file.write_text("import sklearn.base\nfrom polystick.models import topics\n")
    assert list(imports(file)) == [("sklearn", "base"), ("polystick", "models")]
