"""What a function returns for people to read: its text is what a prompt, ``print`` and a notebook show.

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
    """A value that is shown as its ``text``."""

    __slots__ = ()

    def text(self) -> str:
        """What the command prints, without colours."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """What a notebook shows: the text, with no line of it broken."""
        return f'<pre style="white-space: pre; overflow-x: auto">{escape(self.text())}</pre>'
