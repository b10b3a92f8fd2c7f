"""Events of an auction site: persons, auctions and bids, distributed as the Nexmark generator distributes them.

After the generator of https://github.com/nexmark/nexmark, which is that of Apache Beam's Nexmark suite
(``sdks/java/testing/nexmark`` in https://github.com/apache/beam), with its default configuration: of 50 events, one is
a person, three are auctions, 46 are bids; half of the bids are on a hot auction, three of four by a hot bidder, three
of four auctions are of a hot seller; events follow each other in a ten-thousandth of a second. Where the first adds
1000 to the ids of bidders twice, so that most bidders do not exist yet, this follows the second. Random numbers are
numpy's, so events are equally distributed, not equal; the same seed and range give the same events.

    tables = events(0, 1_000_000, seed=1)          # {"person": pa.Table, "auction": ..., "bid": ...}
    write_events(Path("data"), 10_000_000, batches=10, files=2, seed=1)  # data/bid/0000-0.parquet ...

Knows no engine.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PERSONS, AUCTIONS, BIDS = 1, 3, 46
TOTAL = PERSONS + AUCTIONS + BIDS
FIRST_PERSON = FIRST_AUCTION = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
LEAD = 10
"""How many ids ahead of the newest person or auction an event may name."""
ACTIVE_PERSONS, AUCTIONS_IN_FLIGHT = 1000, 100
HOT = 100
"""One of so many persons and auctions is the hot one."""
HOT_SELLERS, HOT_AUCTIONS, HOT_BIDDERS, HOT_CHANNELS = 4, 2, 4, 2
"""All but one of so many events name the hot one."""
PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100
EVENT_MICROS = 100
START_MILLIS = 1_436_918_400_000
"""The time of event 0: 2015-07-15."""

CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
COLD_CHANNELS = 10_000
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne",
)  # fmt: skip
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")

SIDE_ROWS = 10_000

Integers = npt.NDArray[np.int64]


def events(begin: int, end: int, *, seed: int) -> dict[str, pa.Table]:
    """The events of numbers from ``begin`` up to ``end``, by kind."""
    numbers = np.arange(begin, end, dtype=np.int64)
    turn = numbers % TOTAL
    kinds = (turn < PERSONS, (turn >= PERSONS) & (turn < PERSONS + AUCTIONS), turn >= PERSONS + AUCTIONS)
    streams = [np.random.default_rng((seed, begin, kind)) for kind in range(3)]
    return {
        "person": _persons(numbers[kinds[0]], streams[0]),
        "auction": _auctions(numbers[kinds[1]], streams[1]),
        "bid": _bids(numbers[kinds[2]], streams[2], seed),
    }


def side_input() -> pa.Table:
    """Keys from 0 to 9,999, each with a text: what query 13 looks up."""
    keys = np.arange(SIDE_ROWS, dtype=np.int64)
    return pa.table({"key": keys, "value": pa.array([str(key) for key in keys])})


def write_events(directory: Path, count: int, *, batches: int, files: int, seed: int) -> dict[str, int]:
    """Parquet files of ``count`` events, ``files`` a batch in ``directory/<kind>``; the number of rows of each kind.

    Files are as old as their batches, since a stream reads the oldest first.
    """
    rows = {"person": 0, "auction": 0, "bid": 0, "side_input": SIDE_ROWS}
    for batch in range(batches):
        begin, end = (count * bound // batches for bound in (batch, batch + 1))
        for kind, table in events(begin, end, seed=seed).items():
            rows[kind] += table.num_rows
            for part in range(files):
                first, last = (table.num_rows * bound // files for bound in (part, part + 1))
                _write(directory / kind / f"{batch:04d}-{part}.parquet", table.slice(first, last - first), batch)
    _write(directory / "side_input" / "0000-0.parquet", side_input(), 0)
    return rows


def _write(path: Path, table: pa.Table, batch: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    stamp = time.time() - 3600 + batch
    os.utime(path, (stamp, stamp))


def _persons(numbers: Integers, random: np.random.Generator) -> pa.Table:
    size = len(numbers)
    ids = _last_person(numbers)
    name = pc.binary_join_element_wise(_one_of(FIRST_NAMES, size, random), _one_of(LAST_NAMES, size, random), " ")
    mail = pc.binary_join_element_wise(_texts(7, size, random), "@", _texts(5, size, random), ".com", "")
    digits = random.integers(0, 10_000, (4, size))
    card = pc.binary_join_element_wise(
        *(pc.utf8_lpad(pc.cast(pa.array(part), pa.string()), 4, "0") for part in digits), " "
    )
    city, state = _one_of(CITIES, size, random), _one_of(STATES, size, random)
    used = 8 + sum(_lengths(part) for part in (name, mail, card, city, state))
    return pa.table(
        {
            "id": ids + FIRST_PERSON,
            "name": name,
            "emailAddress": mail,
            "creditCard": card,
            "city": city,
            "state": state,
            "dateTime": _times(_millis(numbers)),
            "extra": _extra(used, PERSON_BYTES, random),
        }
    )


def _auctions(numbers: Integers, random: np.random.Generator) -> pa.Table:
    size = len(numbers)
    seller = np.where(
        random.integers(0, HOT_SELLERS, size) > 0, _last_person(numbers) // HOT * HOT, _some_person(numbers, random)
    )
    category = FIRST_CATEGORY + random.integers(0, CATEGORIES, size)
    initial = _prices(size, random)
    millis = _millis(numbers)
    horizon = _millis(numbers + AUCTIONS_IN_FLIGHT * TOTAL // AUCTIONS) - millis
    expires = millis + 1 + random.integers(0, np.maximum(horizon * 2, 1))
    name, description = _texts(20, size, random), _texts(100, size, random)
    reserve = initial + _prices(size, random)
    used = 8 + _lengths(name) + _lengths(description) + 5 * 8
    return pa.table(
        {
            "id": _last_auction(numbers) + FIRST_AUCTION,
            "itemName": name,
            "description": description,
            "initialBid": initial,
            "reserve": reserve,
            "dateTime": _times(millis),
            "expires": _times(expires),
            "seller": seller + FIRST_PERSON,
            "category": category,
            "extra": _extra(used, AUCTION_BYTES, random),
        }
    )


def _bids(numbers: Integers, random: np.random.Generator, seed: int) -> pa.Table:
    size = len(numbers)
    last = _last_auction(numbers)
    first = np.maximum(last - AUCTIONS_IN_FLIGHT, 0)
    some_auction = first + random.integers(0, last - first + 1 + LEAD)
    auction = np.where(random.integers(0, HOT_AUCTIONS, size) > 0, last // HOT * HOT, some_auction)
    bidder = np.where(
        random.integers(0, HOT_BIDDERS, size) > 0, _last_person(numbers) // HOT * HOT + 1, _some_person(numbers, random)
    )
    price = _prices(size, random)
    hot = random.integers(0, HOT_CHANNELS, size) > 0
    channel = np.where(
        hot, random.integers(0, len(CHANNELS), size), len(CHANNELS) + random.integers(0, COLD_CHANNELS, size)
    )
    channels, urls = _channels(seed)
    return pa.table(
        {
            "auction": auction + FIRST_AUCTION,
            "bidder": bidder + FIRST_PERSON,
            "price": price,
            "channel": channels.take(channel),
            "url": urls.take(channel),
            "dateTime": _times(_millis(numbers)),
            "extra": _extra(np.full(size, 4 * 8), BID_BYTES, random),
        }
    )


def _last_person(numbers: Integers) -> Integers:
    """The newest person when an event happens, counted from 0; an event of a person: that one."""
    return numbers // TOTAL * PERSONS + np.minimum(numbers % TOTAL, PERSONS - 1)


def _last_auction(numbers: Integers) -> Integers:
    """The same of auctions; not for events of persons."""
    return numbers // TOTAL * AUCTIONS + np.minimum(numbers % TOTAL - PERSONS, AUCTIONS - 1)


def _some_person(numbers: Integers, random: np.random.Generator) -> Integers:
    people = _last_person(numbers) + 1
    active = np.minimum(people, ACTIVE_PERSONS)
    return people - active + random.integers(0, active + LEAD)


def _prices(size: int, random: np.random.Generator) -> Integers:
    return np.round(np.power(10.0, random.random(size) * 6.0) * 100.0).astype(np.int64)


def _millis(numbers: Integers) -> Integers:
    return START_MILLIS + numbers * EVENT_MICROS // 1000


def _times(millis: Integers) -> pa.Array:
    return pa.array(millis, pa.timestamp("ms"))


def _one_of(texts: tuple[str, ...], size: int, random: np.random.Generator) -> pa.Array:
    return pa.array(texts).take(random.integers(0, len(texts), size))


def _texts(longest: int, size: int, random: np.random.Generator, blank: str = " ") -> pa.Array:
    """Texts of at least three and less than ``longest`` letters, of which one of 13 is ``blank``, trimmed."""
    lengths = random.integers(3, longest, size)
    letters = random.integers(ord("a"), ord("z") + 1, int(lengths.sum()), dtype=np.uint8)
    letters[random.integers(0, 13, len(letters), dtype=np.uint8) == 0] = ord(blank)
    return pc.utf8_trim(_strings(lengths, letters), " ")


def _extra(used: Integers, average: int, random: np.random.Generator) -> pa.Array:
    """Letters that make rows of ``used`` bytes ``average`` bytes long, give or take a fifth of what is missing."""
    missing = np.maximum(average - used, 0)
    delta = np.round(missing * 0.2).astype(np.int64)
    lengths = missing - delta + random.integers(0, np.maximum(2 * delta, 1))
    return _strings(lengths, random.integers(ord("a"), ord("z") + 1, int(lengths.sum()), dtype=np.uint8))


def _strings(lengths: Integers, letters: npt.NDArray[np.uint8]) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(letters))


def _lengths(texts: pa.Array) -> Integers:
    return pc.utf8_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)


def _channels(seed: int) -> tuple[pa.Array, pa.Array]:
    """Names and addresses of the hot channels, then of the others; nine of ten of those carry their id."""
    random = np.random.default_rng((seed, COLD_CHANNELS))
    size = len(CHANNELS) + COLD_CHANNELS
    parts = [_texts(5, size, random, "_") for _ in range(3)]
    address = pc.binary_join_element_wise("https://www.nexmark.com", *parts, "item.htm?query=1", "/").to_pylist()
    named = random.integers(0, 10, size) > 0
    for number in range(COLD_CHANNELS):
        place = len(CHANNELS) + number
        if named[place]:
            address[place] += f"&channel_id={abs(_reversed_bits(number))}"
    return pa.array([*CHANNELS, *(f"channel-{number}" for number in range(COLD_CHANNELS))]), pa.array(address)


def _reversed_bits(number: int) -> int:
    """The 32 bits of ``number`` in reverse order, as a signed number."""
    bits = int(f"{number:032b}"[::-1], 2)
    return bits - (1 << 32) if bits >> 31 else bits
