"""The code that the connectors of data lakes share: storage, data files, and commits."""
