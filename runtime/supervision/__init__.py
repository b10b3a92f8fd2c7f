"""The operation of an unattended run: stop signals, restarts after failures, and health checks."""
