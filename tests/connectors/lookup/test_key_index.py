"""The index of a full cache against a plain dict, for keys of every kind that it tells apart."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.lookup.caches.key_index import key_index

BIGINT = st.integers(-(2**63), 2**63 - 1)
KEYS = st.one_of(
    *(
        st.lists(st.tuples(*parts), unique=True, max_size=30)
        for parts in [
            (st.integers(-20, 20),),
            (BIGINT,),
            (st.integers(2**63 - 30, 2**63 - 1),),
            (st.integers(-(2**63), -(2**63) + 30),),
            (st.text(max_size=3),),
            (st.booleans(),),
            (st.dates(dt.date(2024, 1, 1), dt.date(2024, 2, 1)),),
            (st.decimals(0, 3, places=2),),
            (st.integers(0, 5), st.text(max_size=1)),
        ]
    )
)


@given(KEYS, st.data())
def test_every_key_is_found_at_its_place_and_no_other(keys, data):
    places = {key: place for place, key in enumerate(keys)}
    shape = keys[0] if keys else (0,)
    near = {
        int: st.one_of(BIGINT, st.integers(-25, 25), st.sampled_from([2**63 - 1, -(2**63)])), str: st.text(max_size=3),
        bool: st.booleans(), dt.date: st.dates(), Decimal: st.decimals(0, 4, places=2),
    }  # fmt: skip
    others = data.draw(st.lists(st.tuples(*(near[type(part)] for part in shape)), max_size=30))
    asked = [*others, *keys, *others]
    assert key_index(keys)(asked).tolist() == [places.get(key, -1) for key in asked]


@pytest.mark.parametrize("keys", [[], [(1,)], [("a", 1)]])
def test_nothing_asked_is_nothing_found(keys):
    assert key_index(keys)([]).tolist() == []


def test_numbers_far_apart_do_not_take_an_address_each():
    find = key_index([(0,), (2**62,)])
    assert find([(2**62,), (2**61,), (0,)]).tolist() == [1, -1, 0]
