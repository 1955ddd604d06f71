"""The passes by which Numba compiles kernels and what they call: its own, without those that find nothing."""

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
"""Passes for what no kernel has: closures, `with`, `raise`, arrays, `literal_unroll`, reports for readers."""


class KernelPasses(CompilerBase):
    """Numba's compiler without the idle passes: each searches a function, and many rebuild its graph.

    One that a later Numba adds is run.
    """

    def define_pipelines(self) -> list[PassManager]:
        """Numba's own pipeline, thinned out."""
        every: Any = DefaultPassBuilder.define_nopython_pipeline(self.state)  # type: ignore[no-untyped-call]
        kept: Any = PassManager("kernel")  # type: ignore[no-untyped-call]
        for run, reason in every.passes:
            if run.__name__ not in IDLE:
                kept.add_pass(run, reason)
        kept.finalize()
        return [kept]
