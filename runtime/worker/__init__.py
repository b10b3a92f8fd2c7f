"""What lookups and functions of the user's need of a Python worker: its clock, its event loop, and what tasks share."""
