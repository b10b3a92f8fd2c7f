"""The parts of a Python worker that lookups and the user's functions need: clock, event loop, and shared resources."""
