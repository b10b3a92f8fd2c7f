"""Plan files: read, checked, written, rewritten, found in git and compiled from scripts."""
