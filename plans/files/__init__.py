"""Plan files: reading, checking, writing, rewriting, finding in git, and compiling from scripts."""
