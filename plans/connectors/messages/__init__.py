"""Shared parts of the connectors of message brokers: formats, start and end of a scan, client properties."""
