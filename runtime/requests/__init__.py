"""Requests for rows: lookups in other systems and calls of user-defined functions.

    rows -> pinned answers -> requests for the rest, with retries, a time limit and a capacity -> pins -> joined rows

:mod:`hintplan.runtime.lookup` and :mod:`hintplan.runtime.functions` use this package, which knows neither of them.
Callers pass the clock and the event loop.
"""
