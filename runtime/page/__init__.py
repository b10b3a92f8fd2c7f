"""The page of a running plan: its numbers from the measurements, and the server that shows them in a browser."""
