"""Sources that several families name."""

AITER = "ROCm/aiter@e4048607, aiter/ops/shuffle.py"
EXPRESSIONS = "the source's expressions in torch"
FLASHINFER = "flashinfer 0.7.2.post1"
TRITON = "triton_kernels of triton-lang/triton, layout_details"
