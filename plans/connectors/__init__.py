"""Connectors as data: what each takes, reads, writes and reaches. How they do it is for the runtime."""
