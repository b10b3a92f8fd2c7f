"""What a run needs that nobody looks after: how it is stopped, when it is started again, and whether it is well."""
