"""Covariates beside counts: the rows of both must be the same."""

from polystick.design import as_frame, design
from polystick.estimators.inputs import refuse_other_index

__all__ = ["check_rows", "read"]


def read(covariates, formula, counts, name="counts"):
    """Return the design of a fit, its matrix (n, p), and the columns that are needed, as a DataFrame.

    counts : what came beside the covariates: a table, texts or labels; only its rows are looked at
    """
    check_rows(covariates, counts, name)
    made, matrix = design(covariates, formula)
    frame = as_frame(covariates)[list(made.variables)]
    return made, matrix, frame.reset_index(drop=True)


def check_rows(covariates, counts, name="counts"):
    """Raise unless covariates and counts have equally many rows, of the same names."""
    n, n_counts = rows_of(covariates), rows_of(counts)
    if n != n_counts:
        raise ValueError(
            f"covariates and {name} must have equally many rows, of the same; got {n} and {n_counts}; select "
            "the same rows of both"
        )
    refuse_other_index(covariates, counts, "covariates", name)


def rows_of(table):
    return table.shape[0] if hasattr(table, "shape") and table.shape else len(table)
