"""Bounds as printed elsewhere, for comparison only: some are loose, some are wrong, and no certificate rests on them.

"The paper" is *Differential privacy with partial knowledge* by Desfontaines, Mohammadi, Krahmer and Basin, "the thesis"
is *Lowering the cost of anonymization* by Desfontaines. Plain floats, not rounded in any direction. Nothing else in the
package imports this room; `docs/findings.md` says what is wrong or loose, with checks to run.
"""

from __future__ import annotations

from pkdp_pipeline.theory.printed.counting import (
    proposition_7,
    proposition_7_delta,
    theorem_3_closed_form,
    theorem_3_closed_form_delta,
    theorem_3_condition,
)
from pkdp_pipeline.theory.printed.histograms import theorem_5, theorem_5_chained, theorem_5_presence
from pkdp_pipeline.theory.printed.several import advanced_composition, private_leakage, theorem_6
from pkdp_pipeline.theory.printed.thresholding import theorem_4, theorem_4_passive, theorem_4_passive_delta

__all__ = [
    "advanced_composition",
    "private_leakage",
    "proposition_7",
    "proposition_7_delta",
    "theorem_3_closed_form",
    "theorem_3_closed_form_delta",
    "theorem_3_condition",
    "theorem_4",
    "theorem_4_passive",
    "theorem_4_passive_delta",
    "theorem_5",
    "theorem_5_chained",
    "theorem_5_presence",
    "theorem_6",
]
