"""The formats of files, their options, and the column types that each can hold."""
