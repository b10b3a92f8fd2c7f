"""How each connector reads, writes and looks up: a file or folder each, called after it as in ``plans/connectors``.

:mod:`hintplan.runtime.connectors.table` lists them, and is where the rest of the runtime asks. Drivers are imported
when used.
"""
