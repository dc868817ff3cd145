"""Exact output laws of small releases, enumerated; nothing here uses the library's own mathematics."""
