"""Results of functions for people to read: a prompt, ``print`` and a notebook show their text.

>>> class Greeting(Printed):
...     def text(self) -> str:
...         return "a < b"
>>> Greeting()
a < b
>>> Greeting()._repr_html_()
'<pre style="white-space: pre; overflow-x: auto">a &lt; b</pre>'
"""

from __future__ import annotations

from html import escape


class Printed:
    """A value that is displayed as its ``text``."""

    __slots__ = ()

    def text(self) -> str:
        """Return the output of the corresponding command, without colours."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """Return the text for a notebook, without line breaks inside its lines."""
        return f'<pre style="white-space: pre; overflow-x: auto">{escape(self.text())}</pre>'
