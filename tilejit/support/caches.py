"""Clear the caches of this process."""

from __future__ import annotations

from codegen import clear_caches as clear_all


def clear_caches() -> None:
    """Empty every cache of this process: plans, programs, parsed layouts and native fast paths.

    Caches are bounded, so long-running processes need not clear them. Call this to release memory after work
    with many or large layouts, or to measure first calls. Results stay the same, but the next call with each
    layout takes as long as a first call. Other threads may call TileJIT at the same time.

    >>> x = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> t = tilejit.pack(x, "{1,0:T(2,2)}")
    >>> tilejit.clear_caches()
    >>> np.asarray(t)
    array([[0., 1., 2.],
           [3., 4., 5.]], dtype=float32)

    Plans, kernels and arrays that you hold still work. The machine code of kernels stays in memory until the
    process ends, and kernels stay on disk; `tilejit cache clear` removes those.
    """
    clear_all()
