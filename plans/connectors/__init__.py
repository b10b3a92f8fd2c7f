"""Descriptions of the connectors: the options, row kinds and systems of each. The runtime implements them."""
