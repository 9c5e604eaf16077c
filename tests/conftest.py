"""Numba's disk cache looks at a kernel's own file only: forget it whenever any kernel or table changed."""

import hashlib
from pathlib import Path

KERNELS = Path(__file__).parents[1] / "src" / "polystick" / "kernels"


def pytest_configure(config):
    if hasattr(config, "workerinput"):  # xdist: the controller did it
        return
    sources = sorted([*KERNELS.glob("*.py"), *KERNELS.glob("*.npz")])
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    cache = KERNELS / "__pycache__"
    stamp = cache / "kernels.sha256"
    if not stamp.exists() or stamp.read_text() != digest:
        for path in [*cache.glob("*.nbi"), *cache.glob("*.nbc")]:
            path.unlink()
        cache.mkdir(exist_ok=True)
        stamp.write_text(digest)
