"""The comparison of two plans: matching operators, differences, and the effect on a running job's state."""
