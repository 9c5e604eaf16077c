"""What formulaic has learned of covariates, and which formulas are safe to take from a file.

A formula's factors are Python, which formulaic evaluates. A file's may hold numbers, names of columns,
arithmetic and calls of the functions below, and nothing else: then evaluating it runs nobody's program.
"""

import ast
import re
from collections.abc import Callable

import numpy as np

from polystick.storage.archive import ModelFileError

__all__ = ["READ", "WRITE_OTHERS", "refuse_calls"]

_FUNCTIONS = {
    "C", "Diff", "Helmert", "I", "Poly", "Q", "Sum", "Treatment", "bs", "cc", "center", "cr", "cs", "exp",
    "exp10", "exp2", "hashed", "lag", "log", "log10", "log2", "poly", "scale", "standardize",
}  # fmt: skip
_CONTRASTS = {"treatment", "SAS", "sum", "poly", "helmert", "diff", "custom"}
_NODES = (
    ast.Expression, ast.Call, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.List,
    ast.Tuple, ast.keyword, ast.Load, ast.Attribute, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow,
    ast.FloorDiv, ast.Mod, ast.USub, ast.UAdd, ast.cmpop, ast.BitAnd, ast.BitOr, ast.Invert,
)  # fmt: skip
_QUOTED = re.compile("`[^`]*`")  # a column's name that is no word
_LARGEST_POWER = 20
_LONGEST = 10_000  # characters
_KINDS = ("numerical", "categorical", "constant")


def refuse_calls(formula: str) -> None:
    """Raise unless the factors of a formula call nothing but known functions of columns and numbers."""
    for part in _parts(_parsed(formula)):
        _refuse_in_terms(part)


def _parts(parsed):
    return [parsed] if isinstance(parsed, _formulaic().SimpleFormula) else parsed._flatten()


def _parsed(formula):
    """Return a formula's terms, with an intercept only if it names one."""
    formulaic = _formulaic()
    from formulaic.parser import DefaultFormulaParser

    if len(formula) > _LONGEST:
        raise ModelFileError(
            f"a formula has {len(formula)} characters; at most {_LONGEST} are taken"
        )
    parser = DefaultFormulaParser(include_intercept=False)
    try:
        parsed = formulaic.Formula(formula, _parser=parser)
    except formulaic.errors.FormulaicError as error:
        said = " ".join(str(error).split())[:200]
        raise ModelFileError(f'cannot read the formula "{formula[:80]}": {said}') from error
    return parsed


def _formulaic():
    try:
        import formulaic
    except ImportError as error:
        raise ImportError(
            "a model with a formula needs formulaic; install polystick[formula]"
        ) from error
    return formulaic


def _refuse_in_terms(parsed):
    for factor in {factor for term in parsed for factor in term.factors}:
        if factor.eval_method.value not in ("lookup", "literal"):
            _refuse_in(_QUOTED.sub("column", factor.expr))


def _refuse_in(factor):
    tree = ast.parse(factor, mode="eval")
    for node in ast.walk(tree):
        if not isinstance(node, _NODES) or not _is_tame(node):
            raise ModelFileError(
                f"the formula has {factor[:80]!r}, and those of model files may only have columns, numbers, "
                "arithmetic and the functions of formulaic and NumPy; keep the model with joblib, for files "
                "that only you open"
            )


def _is_tame(node):
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) or _named(node.func) in _FUNCTIONS
    if isinstance(node, ast.Attribute):
        owner = _named(node.value)
        is_contrast = owner == "contr" and node.attr in _CONTRASTS
        return is_contrast or (owner == "np" and isinstance(getattr(np, node.attr, None), np.ufunc))
    if isinstance(node, ast.Name):
        return not node.id.startswith("__")
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return not any(_repeats(side) for side in sides) and _is_small_power(node)
    return True


def _named(node):
    return node.id if isinstance(node, ast.Name) else None


def _repeats(node):
    """Tell what a product would make long: texts and lists."""
    return isinstance(node, ast.List | ast.Tuple) or (
        isinstance(node, ast.Constant) and not isinstance(node.value, int | float)
    )


def _is_small_power(node):
    if not isinstance(node.op, ast.Pow):
        return True
    power = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
    of_columns = any(isinstance(part, ast.Name) for part in ast.walk(node.left))
    value = power.value if isinstance(power, ast.Constant) else None
    return of_columns and isinstance(value, int | float) and abs(value) <= _LARGEST_POWER


# specs


def _write_spec(writer, value, where):
    formula = str(value.formula)
    _refuse_in_terms(value.formula)
    if list(_parsed(formula)) != list(value.formula):
        raise ModelFileError(f"{where} has a formula, {formula[:80]!r}, that can't be written down")
    encoders = {
        name: (kind.value, {k: v for k, v in state.items() if k != "contrasts"})
        for name, (kind, state) in value.encoder_state.items()
    }
    return {
        "formula": formula,
        "transforms": writer.node(dict(value.transform_state), f"{where}.transform_state"),
        "encoders": writer.node(encoders, f"{where}.encoder_state"),
    }


def _read_spec(reader, node):
    formulaic = _formulaic()
    from formulaic.parser.types.factor import Factor

    formula = _parsed(str(node["formula"]))
    for part in _parts(formula):
        _refuse_in_terms(part)
    if not isinstance(formula, formulaic.SimpleFormula):
        raise ModelFileError(f"the formula {node['formula'][:80]!r} must have one part")
    encoders = reader.value(node["encoders"])
    if any(kind not in _KINDS for kind, _ in encoders.values()):
        raise ValueError("a factor of a formula has an unknown kind")
    return formulaic.ModelSpec(
        formula=formula,
        materializer="pandas",
        na_action="raise",
        output="pandas",
        transform_state=reader.value(node["transforms"]),
        encoder_state={
            name: (Factor.Kind(kind), dict(state)) for name, (kind, state) in encoders.items()
        },
    )


def _is_spec(value):
    kind = type(value)  # of a package that is not installed everywhere
    return kind.__name__ == "ModelSpec" and kind.__module__.startswith("formulaic")


WRITE_OTHERS: list[tuple[Callable, str, Callable]] = [(_is_spec, "spec", _write_spec)]
READ: dict[str, Callable] = {"spec": _read_spec}
