"""Evidence that a run collects about each of its states: how old rows are when they are used, and what expired."""
