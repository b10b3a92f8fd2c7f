"""Formats of messages: converts bytes to rows and back, independent of the broker."""
