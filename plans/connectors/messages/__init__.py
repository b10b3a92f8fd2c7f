"""What tables of message brokers have in common: formats of keys and values, where reading starts, properties."""
