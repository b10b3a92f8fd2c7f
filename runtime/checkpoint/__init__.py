"""The files that hintplan adds to a checkpoint, and the locks that allow one run at a time."""
