"""Registers ``pkdp report``, the reports of jobs, and how values are drawn and printed."""

from __future__ import annotations

from pkdp_pipeline.plugins import Plugin

_HERE = "pkdp_pipeline.extras.report"

plugin = Plugin(
    commands={"report": f"{_HERE}.commands:report"},
    views={
        "explanation.heading": f"{_HERE}.content:heading",
        "explanation.html": f"{_HERE}.content:html_of",
        "explanation.text": f"{_HERE}.content:text_of",
        "knowledge_curves": f"{_HERE}.statement:knowledge_curves",
        "ledger.document": f"{_HERE}.ledger.showing:show_document",
        "ledger.entry": f"{_HERE}.ledger.explaining:explain_entry",
        "ledger.explain": f"{_HERE}.ledger.explaining:explain_total",
        "ledger.find": f"{_HERE}.ledger.explaining:found_entry",
        "ledger.registry": f"{_HERE}.ledger.explaining:registry_text",
        "ledger.show": f"{_HERE}.ledger.showing:show",
        "ledger.total": f"{_HERE}.ledger.showing:print_total",
        "plot.certificate": f"{_HERE}.figures:plot_certificate",
        "plot.ledger": f"{_HERE}.figures:plot_ledger",
        "plot.needs": f"{_HERE}.figures:need_matplotlib",
        "plot.release": f"{_HERE}.figures:plot_release",
        "report.carried": f"{_HERE}.pages:carried",
        "report.claims": f"{_HERE}.verification:report_claims",
        "statement": f"{_HERE}.statement:Statement",
        "statement.html": f"{_HERE}.content:statement_html",
        "what_if": f"{_HERE}.statement:what_if",
    },
    after_period={"output.report": f"{_HERE}.job_report:ReportStep"},
)
