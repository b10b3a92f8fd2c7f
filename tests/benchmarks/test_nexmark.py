"""The events of the Nexmark benchmark are distributed as its generator's, and its queries compile."""

from __future__ import annotations

from pathlib import Path
from string import Template

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest

from benchmarks.nexmark_events import events, write_events
from hintplan import compile_sql
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.operators import LookupJoin, Scan

COUNT = 200_000
QUERIES = Path("benchmarks/nexmark")


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return events(0, COUNT, seed=7)


def numbers(table: pa.Table, column: str) -> np.ndarray:
    return table[column].combine_chunks().to_numpy(zero_copy_only=False)


def share(condition: np.ndarray) -> float:
    return float(np.mean(condition))


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_bids(tables):
    assert {kind: table.num_rows for kind, table in tables.items()} == {
        "person": COUNT // 50,
        "auction": COUNT // 50 * 3,
        "bid": COUNT // 50 * 46,
    }


def test_ids_count_from_1000(tables):
    for kind in ("person", "auction"):
        table = tables[kind]
        assert numbers(table, "id").tolist() == list(range(1000, 1000 + table.num_rows))


def test_half_of_the_bids_are_on_the_hot_auction_of_a_hundred(tables):
    # The other half hits it too, about once in 111.
    assert share((numbers(tables["bid"], "auction") - 1000) % 100 == 0) == pytest.approx(0.5 + 0.5 / 105, abs=0.01)


def test_three_of_four_bids_are_by_the_hot_bidder_of_a_hundred_and_as_many_auctions_of_the_hot_seller(tables):
    assert share((numbers(tables["bid"], "bidder") - 1000) % 100 == 1) == pytest.approx(0.75 + 0.25 / 100, abs=0.01)
    assert share((numbers(tables["auction"], "seller") - 1000) % 100 == 0) == pytest.approx(0.75 + 0.25 / 100, abs=0.02)


def test_bids_name_auctions_in_flight_and_at_most_ten_ahead(tables):
    bids = tables["bid"]
    newest = np.repeat(np.arange(COUNT // 50) * 3 + 2, 46)
    distance = numbers(bids, "auction") - 1000 - newest
    assert distance.max() == 10
    assert distance.min() >= -max(100, 99 + 2)


def test_bids_name_active_persons_and_at_most_ten_ahead(tables):
    newest = np.repeat(np.arange(COUNT // 50), 46)
    distance = numbers(tables["bid"], "bidder") - 1000 - newest
    assert distance.max() == 10
    assert distance.min() == -999


def test_the_logarithm_of_a_price_is_uniform_between_that_of_one_and_of_a_million_dollars(tables):
    price = numbers(tables["bid"], "price")
    assert price.min() >= 100
    assert price.max() <= 100_000_000
    below = [share(price < 100 * 10**digits) for digits in range(1, 6)]
    assert below == pytest.approx([digits / 6 for digits in range(1, 6)], abs=0.01)


def test_half_of_the_bids_come_through_four_hot_channels_and_each_channel_has_one_address(tables):
    bids = tables["bid"]
    hot = pc.is_in(bids["channel"], pa.array(["Google", "Facebook", "Baidu", "Apple"]))
    assert pc.mean(pc.cast(hot, pa.float64())).as_py() == pytest.approx(0.5, abs=0.01)
    pairs = bids.group_by(["channel", "url"]).aggregate([])
    assert pairs.num_rows == len(pc.unique(bids["channel"]))
    named = pc.match_substring(pairs["url"], "&channel_id=")
    assert pc.mean(pc.cast(named, pa.float64())).as_py() == pytest.approx(0.9, abs=0.02)


def test_rows_are_as_long_on_average_as_the_generator_says(tables):
    extra = pc.mean(pc.utf8_length(tables["bid"]["extra"])).as_py()
    assert extra + 32 == pytest.approx(100, abs=1)
    auction = tables["auction"]
    texts = sum(pc.mean(pc.utf8_length(auction[name])).as_py() for name in ("itemName", "description", "extra"))
    assert texts + 48 == pytest.approx(500, abs=3)
    person = tables["person"]
    names = ("name", "emailAddress", "creditCard", "city", "state", "extra")
    assert sum(pc.mean(pc.utf8_length(person[name])).as_py() for name in names) + 8 == pytest.approx(200, abs=2)


def test_auctions_have_a_category_of_five_and_end_after_some_hundred_auctions_more(tables):
    auction = tables["auction"]
    assert pc.unique(auction["category"]).sort().to_pylist() == [10, 11, 12, 13, 14]
    length = (numbers(auction, "expires") - numbers(auction, "dateTime")).astype(np.int64)
    assert length.min() >= 1
    assert length.max() <= 2 * 167
    assert float(length.mean()) == pytest.approx(167, abs=4)


def test_ten_events_share_a_millisecond(tables):
    times = numbers(tables["bid"], "dateTime").astype(np.int64)
    assert times[-1] - times[0] == (COUNT - 1) // 10
    assert (np.diff(times) >= 0).all()


def test_the_same_seed_gives_the_same_events_and_another_gives_others():
    assert events(0, 1000, seed=1) == events(0, 1000, seed=1)
    assert events(0, 1000, seed=1)["bid"] != events(0, 1000, seed=2)["bid"]


def test_files_hold_all_events_in_batches(tmp_path):
    rows = write_events(tmp_path, 1000, batches=3, files=2, seed=1)
    assert rows == {"person": 20, "auction": 60, "bid": 920, "side_input": 10_000}
    assert len(list((tmp_path / "bid").iterdir())) == 6
    ids = pa.dataset.dataset(tmp_path / "auction").to_table()["id"].to_pylist()
    assert sorted(ids) == list(range(1000, 1060))


@pytest.mark.parametrize("query", sorted(path.stem for path in QUERIES.glob("q*.sql")))
def test_every_query_compiles_to_a_valid_plan_over_the_tables_of_the_events(query):
    text = (QUERIES / "tables.sql").read_text() + (QUERIES / f"{query}.sql").read_text()
    watermark = ", WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND" if "window_start" in text else ""
    plan = compile_sql(Template(text).substitute(data="data", options="", watermark=watermark))
    assert not plan_problems(plan)
    read = {operator.table for operator in plan.operators if isinstance(operator, Scan | LookupJoin)}
    assert read <= {"person", "auction", "bid", "side_input"}
