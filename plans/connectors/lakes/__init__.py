"""Shared parts of the delta and iceberg connectors: locations of files, catalogs, checks of columns, sink options."""
