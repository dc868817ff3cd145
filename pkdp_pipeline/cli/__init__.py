"""The command line: commands only."""
