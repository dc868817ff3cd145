"""The rest of the papers: bounded leakage, readings of a privacy loss, counting queries and printed bounds."""
