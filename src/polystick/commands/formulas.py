"""Which columns of a table a formula speaks of: these are covariates, and what is left are counts."""

import keyword
import re

__all__ = ["columns_of"]

_STRING = re.compile(r"'[^']*'|\"[^\"]*\"")
_QUOTED = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"(?<![\w.])([^\W\d]\w*)(?!\w)(?!\s*(?:\(|\.|=(?!=)))")  # no f(, np. or df=


def columns_of(formula):
    """Return the columns that a formula names, each once, in its order; functions are none."""
    words = re.compile(f"{_QUOTED.pattern}|{_NAME.pattern}")
    found = [quoted or name for quoted, name in words.findall(_STRING.sub("", formula))]
    return [name for name in dict.fromkeys(found) if not keyword.iskeyword(name)]
