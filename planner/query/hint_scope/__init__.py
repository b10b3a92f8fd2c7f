"""Which input of a query block a hint of the block means."""
