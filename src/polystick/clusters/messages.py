"""What the processes of one cluster say to each other, written and read as Dask does it.

Arrays can be written to where they could be before: what a task is given can't, and kernels would be compiled
anew for that.
"""

from typing import Any

__all__ = ["read", "written"]


def written(message: object) -> bytes:
    """Return a message as bytes."""
    from distributed.protocol import serialize_bytes

    return bytes(serialize_bytes(message, compression=None))


def read(content: bytes) -> Any:
    """Return a message again, which another process of the cluster wrote."""
    from distributed.protocol import deserialize_bytes

    return deserialize_bytes(content)
