"""What a terminal shows of a ledger."""
