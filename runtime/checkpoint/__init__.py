"""The files beside a checkpoint, and one run at a time."""
