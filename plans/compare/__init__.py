"""Two plans beside each other: which operator is which, what differs, and what becomes of a job's state."""
