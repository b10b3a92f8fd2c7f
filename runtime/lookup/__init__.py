"""Lookup joins: enrich the rows of a stream with the rows that a source has for their keys at that moment.

    rows -> distinct keys -> one cache probe -> missing keys fetched from the source -> take -> rows

Users implement the interfaces of :mod:`hintplan.runtime.lookup.api` for a source, a cache or a reload trigger of their
own. Callers pass the clock to caches, triggers and the executor. Sources are in :mod:`hintplan.runtime.lookup.sources`.
This package knows no SQL.
"""
