"""Messages of brokers: bytes to rows and back, in each format, wherever they come from."""
