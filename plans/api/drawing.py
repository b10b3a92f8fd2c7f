"""``hintplan.show``: a plan as a page, a picture, a graph for other tools, or a tree.

>>> show(Plan(name="p"))
p · streaming · 0 operators, 0 with state
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.errors import PlanError
from hintplan.plans.files.codec import write_plan_bytes
from hintplan.plans.model.plan import Plan
from hintplan.plans.show.page_script import Script
from hintplan.plans.text.names import did_you_mean
from hintplan.plans.text.printed import Printed

if TYPE_CHECKING:
    from hintplan.plans.evidence.document import Evidence

FORMATS = ("html", "svg", "mermaid", "dot", "tree")
ENDINGS = {
    ".html": "html",
    ".htm": "html",
    ".svg": "svg",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".txt": "tree",
}
"""The format for each file extension."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Drawing(Printed):
    """A drawing of ``plan``; with ``before``, the differences from that older plan are marked.

    With ``around``, it contains only these operators, and operators at most ``hops`` edges away.
    """

    plan: Plan
    before: Plan | None = None
    around: tuple[str, ...] = ()
    hops: int = 1

    def text(self) -> str:
        """Return the tree of the plan, as ``hintplan show`` prints it."""
        return self.drawn("tree")

    def drawn(self, layout: str) -> str:
        """Return the plan as ``html``, ``svg``, ``mermaid``, ``dot`` or ``tree``; raise PlanError for other formats."""
        if layout not in FORMATS:
            raise PlanError(f"there is no format {layout!r}", hint=did_you_mean(layout, FORMATS, what="formats"))
        return drawn(layout, self.plan, self.before, self.around, self.hops, None, "plan.json")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file in the format of its extension: .html, .svg, .mmd, .dot, .gv or .txt."""
        layout = ENDINGS.get(os.path.splitext(path)[1].lower())
        if layout is None:
            endings = ", ".join(ENDINGS)
            raise PlanError(f"the name '{os.fspath(path)}' has no known suffix", hint=f"end it in one of {endings}")
        write_plan_bytes(self.drawn(layout).encode(), os.fspath(path))

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()


def show(plan: PlanLike, *, before: PlanLike | None = None, around: Collection[str] = (), hops: int = 1) -> Drawing:
    """Draw ``plan``: a notebook shows the picture, and ``save("plan.html")`` writes a page.

    ``before`` is an older plan; differences from it are marked. Raise PlanError if one of ``around`` is no operator.
    """
    newer, older = plan_of(plan), None if before is None else plan_of(before)
    check_ids(around, newer, older)
    return Drawing(plan=newer, before=older, around=tuple(around), hops=hops)


def drawn(
    layout: str,
    plan: Plan,
    before: Plan | None,
    centre: Collection[str],
    hops: int,
    script: Script | None,
    file: str,
    evidence: Evidence | None = None,
) -> str:
    """Return the plan in one of ``FORMATS``; ``file`` is the plan's name in the commands on a page.

    A page shows the ``evidence``.
    """
    if layout == "tree":
        from hintplan.plans.show.explain import plan_tree

        return plan_tree(plan)
    if layout == "html":
        from hintplan.plans.show.page import plan_page

        return plan_page(plan, before=before, script=script, file=file, centre=centre, hops=hops, evidence=evidence)
    from hintplan.plans.compare.diff import compare_plans
    from hintplan.plans.show.graph_text import dot, mermaid
    from hintplan.plans.show.page_data import row_kinds
    from hintplan.plans.show.picture import around, picture
    from hintplan.plans.show.svg import standalone

    shown = picture(plan, before=before, changes=compare_plans(before, plan) if before is not None else ())
    shown = around(shown, centre, hops=hops) if centre else shown
    if layout == "svg":
        return standalone(shown, kinds=row_kinds(plan))
    return mermaid(shown) if layout == "mermaid" else dot(shown)


def check_ids(ids: Collection[str], plan: Plan, before: Plan | None) -> None:
    """Raise PlanError if one of ``ids`` is no operator of either plan."""
    operators = [operator.id for version in (plan, before) if version is not None for operator in version.operators]
    for name in ids:
        if name not in operators:
            hint = did_you_mean(name, list(dict.fromkeys(operators)), what="operators")
            raise PlanError(f"there is no operator '{name}'", hint=hint)
