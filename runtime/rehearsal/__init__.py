"""A plan run step by step in this process, with a clock of its own, for ``hintplan test``."""
