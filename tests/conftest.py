"""One thread for numpy's products: with more, the workers of the suite wait for each other's spinning threads."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
