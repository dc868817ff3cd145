"""Certificates of one release and of several together: their numbers, their sentences and their JSON."""
