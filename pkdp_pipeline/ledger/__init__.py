"""The append-only ledger: what stands published about whom, charged before the data are read."""

from __future__ import annotations

from pkdp_pipeline.ledger.admission import check_differencing
from pkdp_pipeline.ledger.chain import Budget
from pkdp_pipeline.ledger.ledger import Ledger
from pkdp_pipeline.ledger.rows import Entry, Reservation
from pkdp_pipeline.model.period import Period

__all__ = ["Budget", "Entry", "Ledger", "Period", "Reservation", "check_differencing"]
