"""The layout: arrows go right, boxes do not touch, trees do not cross, and the same input gives the same places."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.plans.show.layout import BoxLayout, Link, place

Sizes = list[tuple[float, float]]


def links(*pairs: tuple[int, int]) -> list[Link]:
    return [Link(source=a, target=b, out=10, into=10) for a, b in pairs]


def overlaps(sizes: Sizes, placed: BoxLayout) -> list[tuple[int, int]]:
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(placed.boxes, sizes, strict=True)]
    return [
        (i, j)
        for (i, a), (j, b) in combinations(enumerate(boxes), 2)
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Sizes, list[Link]]:
    count = draw(st.integers(1, 24))
    sizes = [(float(draw(st.integers(20, 250))), float(draw(st.integers(20, 120)))) for _ in range(count)]
    pairs = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=40))
    return sizes, links(*pairs)


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_no_boxes_touch_and_all_lie_inside_whatever_the_graph(graph: tuple[Sizes, list[Link]]) -> None:
    sizes, arrows = graph
    placed = place(sizes, arrows)
    assert overlaps(sizes, placed) == []
    for (x, y), (w, h) in zip(placed.boxes, sizes, strict=True):
        assert -1e-6 <= x <= placed.width - w + 1e-6
        assert -1e-6 <= y <= placed.height - h + 1e-6
    assert placed == place(sizes, arrows)


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_arrows_without_cycles_go_right_and_end_at_their_boxes(graph: tuple[Sizes, list[Link]]) -> None:
    sizes, arrows = graph
    forward = [link for link in arrows if link.source < link.target]
    placed = place(sizes, forward)
    for link, route in zip(forward, placed.routes, strict=True):
        (x, y), (tx, ty) = placed.boxes[link.source], placed.boxes[link.target]
        assert route[0] == (x + sizes[link.source][0], y + link.out) or route[0][0] >= x + sizes[link.source][0]
        assert (route[-1][0], round(route[-1][1], 6)) == (tx, round(ty + link.into, 6))
        assert all(a[0] <= b[0] for a, b in pairwise(route))


def test_a_chain_is_straight() -> None:
    sizes = [(100.0, 40.0), (80.0, 90.0), (120.0, 40.0)]
    placed = place(sizes, links((0, 1), (1, 2)))
    assert [round(y, 3) for _, y in placed.boxes] == [0, 0, 0]


def test_a_tree_of_joins_has_no_crossings_and_keeps_left_above_right() -> None:
    # A balanced tree over eight scans, given in a shuffled order.
    pairs, level, following = [], list(range(8)), 8
    while len(level) > 1:
        above = []
        for a, b in zip(level[::2], level[1::2], strict=True):
            pairs += [(a, following, 10.0), (b, following, 30.0)]
            above.append(following)
            following += 1
        level = above
    arrows = [Link(source=a, target=b, out=20, into=into) for a, b, into in pairs]
    for seed in range(5):
        random.Random(seed).shuffle(arrows)
        placed = place([(100.0, 40.0)] * following, arrows)
        heights = [y for _, y in placed.boxes[:8]]
        spans = [(heights[a], heights[a + 1]) for a in range(0, 8, 2)]
        # Each pair of scans stands together, so that nothing comes between the arrows into their join.
        assert all(abs(b - a) == 60 for a, b in spans), spans


def test_an_arrow_past_a_layer_goes_round_the_boxes_in_it() -> None:
    sizes = [(100.0, 40.0)] * 3
    placed = place(sizes, links((0, 1), (1, 2), (0, 2)))
    (x, y), route = placed.boxes[1], placed.routes[2]
    assert len(route) == 4
    assert all(not (y <= py <= y + 40) for px, py in route if x <= px <= x + 100)


def test_a_scan_stands_next_to_what_reads_it() -> None:
    # 0 -> 1 -> 2 -> 3, and scan 4 is read by 3 only.
    placed = place([(100.0, 40.0)] * 5, links((0, 1), (1, 2), (2, 3), (4, 3)))
    assert placed.boxes[4][0] == placed.boxes[2][0]


def test_separate_pipelines_do_not_make_one_long_column() -> None:
    pairs = [(2 * i, 2 * i + 1) for i in range(60)]
    placed = place([(200.0, 46.0)] * 120, links(*pairs))
    assert 0.5 < placed.width / placed.height < 4
