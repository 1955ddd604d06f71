"""The Numba passes that compile kernels and their routines: Numba's own, without those that never apply."""

from __future__ import annotations

from typing import Any

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager

IDLE = frozenset(
    {
        "WithLifting",
        "InlineClosureLikes",
        "RewriteDynamicRaises",
        "MakeFunctionToJitFunction",
        "InlineInlinables",
        "FindLiterallyCalls",
        "LiteralUnroll",
        "LiteralPropagationSubPipelinePass",
        "InlineOverloads",
        "NopythonRewrites",
        "NoPythonSupportedFeatureValidation",
        "AnnotateTypes",
        "DumpParforDiagnostics",
    }
)
"""Passes for features unused in kernels: closures, `with`, `raise`, arrays, `literal_unroll`, reports."""


class KernelPasses(CompilerBase):
    """Numba's compiler without the idle passes: each searches the function, and many rebuild its graph.

    Passes that a later Numba adds are kept.
    """

    def define_pipelines(self) -> list[PassManager]:
        """Numba's own pipeline without the idle passes."""
        every: Any = DefaultPassBuilder.define_nopython_pipeline(self.state)  # type: ignore[no-untyped-call]
        kept: Any = PassManager("kernel")  # type: ignore[no-untyped-call]
        for run, reason in every.passes:
            if run.__name__ not in IDLE:
                kept.add_pass(run, reason)
        kept.finalize()
        return [kept]
