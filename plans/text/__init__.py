"""Text from people and for people: files read safely, strict JSON with places, names, what a terminal shows."""
