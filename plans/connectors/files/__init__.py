"""The formats of files: which there are, what they can be told, and which columns they can hold."""
