"""The rules that keep compiling short, as a program over the syntax trees of the kernels.

Copying an array by a slice assignment compiles 38 functions, for the text of an error that never comes.
A kernel that is called costs a compilation of its own, and all above it optimise its code again; one that
is inlined by Numba (`inline="always"`) costs little where it stands once, and its whole price each time
where it stands often: there LLVM does it (`forceinline=True`), or nobody.
"""

import ast
import collections
from pathlib import Path

import pytest

import polystick.kernels

HOME = Path(polystick.kernels.__file__).parent
FILES = sorted(HOME.glob("*.py"))

# kernels with one call site that stay calls: what is rare is kept out of hot loops, and type inference
# takes more than twice the time for twice the code; and loops are vectorised that stand alone
CALLED = {
    "assignments._draw_carefully",
    "ellipse.draw_angles",
    "gaussian.draw_rows",  # which Python calls too
    "hats.climb_in_place",
    "hats.find_hats",
    "streams._finish_normal",
    "polyagamma.draw_residual",
    "stick_filter._filter_sequence",
    "stick_proposal.find_proposal",
    "stick_proposal.guide",
    "stick_proposal.weigh_in_place",
}


# ---- no slice assignment of arrays


def parts_of(target):
    return target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]


def pairs_of(target, node):
    """Return what is assigned to what, one by one if both sides are tuples."""
    targets, values = parts_of(target), parts_of(node.value)
    return zip(targets, values if len(values) == len(targets) else [node.value] * len(targets))


def is_slice(target):
    return isinstance(target, ast.Subscript) and any(
        isinstance(node, ast.Slice) for node in ast.walk(target.slice)
    )


def is_number(value):
    """Tell whether an expression is a literal number, math.inf or the like, or minus one of them."""
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    of_math = isinstance(value, ast.Attribute) and ast.unparse(value.value) == "math"
    return of_math or isinstance(value, ast.Constant)


def arrays_of(function):
    """Return the names that a function indexes, asks for their shape, or makes by NumPy."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            found.add(node.value.id)
        elif isinstance(node, ast.Attribute) and node.attr in ("shape", "size", "reshape", "copy"):
            found.add(ast.unparse(node.value))
        elif isinstance(node, ast.Assign):
            for target, value in zip(parts_of(node.targets[0]), parts_of(node.value)):
                if ast.unparse(value).startswith(("np.empty", "np.zeros", "np.ones", "np.full")):
                    found.add(ast.unparse(target))
    return found


def copied_arrays(source):
    """Return the assignments to a part of an array that may copy an array."""
    wrong = []
    for function in kernels_in(ast.parse(source)):
        arrays = arrays_of(function)
        for node in ast.walk(function):
            if not isinstance(node, ast.Assign):
                continue
            for target, value in (pair for whole in node.targets for pair in pairs_of(whole, node)):
                is_array = isinstance(value, ast.Name) and value.id in arrays
                is_part = isinstance(target, ast.Subscript)
                if (is_slice(target) and not is_number(value)) or (is_part and is_array):
                    wrong.append(ast.unparse(node))
    return wrong


def kernels_in(tree):
    return [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(d).split("(")[0] == "kernel" for d in node.decorator_list)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_array_is_copied_by_assignment(path):
    assert copied_arrays(path.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "a[:] = b",
        "a[0, :] = x",
        "a[1:3] = b[2:4]",
        "a[:] = 2.0 * b",
        "a[0] = b",
        "a[0], x = (b, 1.0)",
        "x = a[:] = b",
    ],
)
def test_the_walk_sees_copies(line):
    source = f"@kernel\ndef f(a, b, x):\n    {line}\n    return b[0]\n"
    assert copied_arrays(source) == [line]
    assert copied_arrays(source.replace(line, "a[:] = -1.0\n    a[0, :] = -math.inf")) == []
    assert copied_arrays(source.replace(line, "a[0] = x\n    a[1] = b[1]")) == []


# ---- inlining


class Kernels:
    """All kernels of some files, how they are decorated and who calls whom."""

    def __init__(self, sources):
        trees = {module: ast.parse(source) for module, source in sources.items()}
        self.functions = {
            f"{module}.{function.name}": function
            for module, tree in trees.items()
            for function in kernels_in(tree)
        }
        self.sites = collections.defaultdict(
            list
        )  # of each kernel: who calls it, once for each call
        for caller, function in self.functions.items():
            module = caller.split(".")[0]
            names = imported(trees[module])
            for node in ast.walk(function):
                if isinstance(node, ast.Call):
                    first, *rest = ast.unparse(node.func).split(".")
                    name = ".".join([names.get(first, f"{module}.{first}"), *rest])
                    if name in self.functions:
                        self.sites[name].append(caller)

    def option(self, name):
        (decorator,) = (
            text
            for d in self.functions[name].decorator_list
            if (text := ast.unparse(d)).split("(")[0] == "kernel"
        )
        return decorator.removeprefix("kernel").strip("()")

    def is_inlined(self, name):
        return self.option(name) == "inline='always'"

    def is_expression(self, name):
        body = [node for node in self.functions[name].body if not isinstance(node, ast.Expr)]
        return len(body) == 1 and isinstance(body[0], ast.Return)

    def copies(self, name):
        """Count the copies of a kernel in each kernel that is compiled, once Numba has inlined."""
        count = collections.Counter()
        for caller in self.sites[name]:
            count.update(self.copies(caller) if self.is_inlined(caller) else [caller])
        return count


def imported(tree):
    """Return what names of a module stand for: another module of kernels, or a kernel in it."""
    names = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("polystick.kernels"):
            home = node.module.removeprefix("polystick.kernels").strip(".")
            for alias in node.names:
                names[alias.asname or alias.name] = f"{home}.{alias.name}".strip(".")
    return names


def broken_rules(kernels):
    broken = []
    for name in kernels.functions:
        most = max(kernels.copies(name).values(), default=0)
        if kernels.is_inlined(name):
            if most > 1 and not kernels.is_expression(name):
                broken.append(f"{name}: Numba inlines it {most} times into one kernel")
        elif len(kernels.sites[name]) == 1 and name not in CALLED:
            broken.append(f"{name}: has one call site and is not inlined")
        elif kernels.option(name) not in ("", "forceinline=True"):
            broken.append(f"{name}: unknown option {kernels.option(name)}")
    return broken


def test_kernels_are_inlined_where_it_pays():
    kernels = Kernels({path.stem: path.read_text() for path in FILES})
    assert len(kernels.functions) > 200
    assert broken_rules(kernels) == []
    assert {name for name in CALLED if len(kernels.sites[name]) != 1} == set()


INLINED = {
    "one": """
@kernel(inline="always")
def tiny(x):
    return x + 1

@kernel(inline="always")
def inner(x):
    y = tiny(x) + tiny(x)
    return y
""",
    "two": """
from polystick.kernels import kernel, one
from polystick.kernels.one import inner as again

@kernel
def outer(x):
    return one.inner(x)

@kernel
def other(x):
    return again(x)
""",
}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", None),
        ("return one.inner(x)", "return one.inner(x) + again(x)", "one.inner: Numba inlines it 2"),
        ("return again(x)", "return x", None),
        ('@kernel(inline="always")\ndef inner', "@kernel\ndef inner", None),
        ('@kernel(inline="always")\ndef tiny', "@kernel(fast=True)\ndef tiny", "one.tiny: unknown"),
        ("def other(x):\n    return", "def other(x):\n    return x + outer(x) +", "two.outer: has"),
    ],
)
def test_the_walk_sees_what_does_not_pay(old, new, message):
    sources = {name: source.replace(old, new) for name, source in INLINED.items()}
    broken = broken_rules(Kernels(sources))
    assert broken == [] if message is None else any(b.startswith(message) for b in broken), broken
