"""Lookup joins: rows of a stream enriched with what a source says about their keys at that moment.

    rows -> distinct keys -> one cache probe -> missing keys fetched from the source -> take -> rows

:mod:`hintplan.runtime.lookup.api` is what people implement who bring a source, a cache or a reload trigger of their
own. Caches, triggers and the executor take their clock from outside; sources live in
:mod:`hintplan.runtime.lookup.sources`. Knows no SQL.
"""
