"""Declarations that derive from another declaration: CREATE TABLE ... LIKE, and ALTER TABLE."""
