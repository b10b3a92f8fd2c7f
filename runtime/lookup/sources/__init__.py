"""What the lookup sources of connectors have in common: addresses, values, answers and failures."""
