"""What people look at: figures, reports, and text on a terminal."""
