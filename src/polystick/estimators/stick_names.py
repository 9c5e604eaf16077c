"""Names of the binary splits of a decomposition."""

__all__ = ["stick_names"]


def stick_names(decomposition, names):
    """Name each split by the category it breaks off, or by its number in a tree."""
    first = decomposition.children[:, 0]
    return [names[c] if c >= 0 else f"node {i}" for i, c in enumerate(first)]
