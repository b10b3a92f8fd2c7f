"""What a run tells monitoring of itself: one table of metrics, what is measured of a run, and who gets it."""
