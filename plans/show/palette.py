"""The colours of pictures of plans: for the page and SVG files, and for Mermaid and Graphviz.

Text colours have a contrast of at least 4.5 to their backgrounds; a test computes it.

>>> PALETTE["face"].light
'#ffffff'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour on a light and on a dark background."""

    light: str
    dark: str


PALETTE: Mapping[str, Colour] = {
    "ground": Colour("#f5f6f8", "#12161c"),
    "face": Colour("#ffffff", "#1b2129"),
    "panel": Colour("#ffffff", "#171c23"),
    "shade": Colour("#eceff3", "#232a34"),
    "line": Colour("#d3d8e0", "#353e4a"),
    "edge": Colour("#98a2b1", "#667384"),
    "text": Colour("#1a2230", "#e3e8ef"),
    "soft": Colour("#566273", "#9aa7b7"),
    "pass": Colour("#c3cad5", "#48525f"),
    "end": Colour("#6b7688", "#8793a4"),
    "state": Colour("#2560c4", "#7fb0ff"),
    "state-face": Colour("#f1f6ff", "#182640"),
    "state-line": Colour("#a9c4f2", "#33558c"),
    "pill": Colour("#e3ecfb", "#223860"),
    "wait": Colour("#0b706b", "#5fd0c5"),
    "wait-face": Colour("#effaf8", "#13302f"),
    "wait-line": Colour("#9fd4cd", "#2a6561"),
    "edit": Colour("#7a2fd0", "#c79bff"),
    "edit-face": Colour("#f1e6ff", "#34224f"),
    "added": Colour("#1a7540", "#6fd695"),
    "added-face": Colour("#e8f7ed", "#14301f"),
    "removed": Colour("#b3261e", "#ff938a"),
    "removed-face": Colour("#fdeeed", "#3c1b1a"),
    "changed": Colour("#9a4c00", "#ffb45c"),
    "changed-face": Colour("#fff0db", "#3a2810"),
    "moved": Colour("#0b6c79", "#62cfdd"),
    "moved-face": Colour("#e5f6f8", "#12333a"),
    "never": Colour("#b3261e", "#ff938a"),
    "focus": Colour("#1a56d6", "#8fb8ff"),
    "mark": Colour("#ffe69a", "#5c480e"),
}


@dataclass(frozen=True, slots=True)
class BoxColours:
    """The colours of a box in Mermaid and Graphviz, which know no dark background: legible on light and dark pages."""

    fill: str
    border: str
    text: str


HIGHLIGHTS: Mapping[str, BoxColours] = {
    "state": BoxColours("#e8f0fe", "#3b6fd4", "#1b2a41"),
    "edit": BoxColours("#f1e6ff", "#7a2fd0", "#33105c"),
    "added": BoxColours("#e3f6e8", "#2c8a4b", "#0d3a1c"),
    "removed": BoxColours("#fdeaea", "#c23b3b", "#4a1010"),
    "changed": BoxColours("#fff0dd", "#d9730d", "#4a2500"),
    "moved": BoxColours("#e0f4f6", "#0f7c8a", "#073b42"),
}
"""The highlighted boxes of Mermaid and Graphviz."""

GRAPH_FACE, GRAPH_LINE = "#ffffff", "#8a94a6"
"""The other boxes and the arrows of Graphviz."""


def variables(*, dark: bool) -> str:
    """Return the colours as CSS custom properties."""
    scheme = "dark" if dark else "light"
    return f"color-scheme:{scheme};" + "".join(
        f"--{name}:{colour.dark if dark else colour.light};" for name, colour in PALETTE.items()
    )


def resolve_colours(css: str, *, dark: bool) -> str:
    """Replace ``var(--name)`` in ``css`` by the colours, for programs that do not support custom properties."""

    def colour(match: re.Match[str]) -> str:
        pair = PALETTE[match[1]]
        return pair.dark if dark else pair.light

    return re.sub(r"var\(--([a-z-]+)\)", colour, css)
