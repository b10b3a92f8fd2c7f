"""The connectors' code for reads, writes and lookups: one file or folder for each connector in ``plans/connectors``.

:mod:`hintplan.runtime.connectors.table` lists the connectors and is the only entry point for the rest of the runtime.
Client libraries are imported when a connector is first used.
"""
