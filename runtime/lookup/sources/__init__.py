"""Code that the lookup sources of several connectors share: addresses, values, answers and failures."""
