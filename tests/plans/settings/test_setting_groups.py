"""Groups of settings as an operator's file declares them: what each layer asks for, and the keys that set them."""

from __future__ import annotations

from hintplan.plans.format.printer import print_value
from hintplan.plans.model.config import group_keys
from hintplan.plans.operators import KINDS
from hintplan.plans.operators.join import Join
from hintplan.plans.settings.effects import restarts
from hintplan.plans.settings.group import Group, specs
from hintplan.plans.settings.layers import edits_of, set_by
from hintplan.plans.settings.lookup import CACHING
from hintplan.plans.settings.setting import Setting


def limit(side: str) -> Setting:
    return Setting(
        name=side,
        kind="int",
        default=0,
        description=f"How many rows of the {side} input are kept; 0 keeps all.",
        effect=restarts("it is a test"),
        config="table.exec.test.limit",
    )


LIMITS = Group(
    name="limits",
    schema="limits",
    description="How many rows are kept.",
    layers=("default", "config"),
    absent="left out",
    settings=specs(limit("left"), limit("right")),
)


def test_a_key_may_set_several_settings_of_a_group() -> None:
    (key,) = group_keys(LIMITS, (Join,), "join")
    assert (key.name, key.sets) == ("table.exec.test.limit", ("left", "right"))
    assert key.description == "How many rows are kept. For joins without a value of their own; 0 if absent."
    assert key.places == {("join", "limits", "left"), ("join", "limits", "right")}


def test_config_asks_for_all_settings_of_its_key_and_an_edit_for_one() -> None:
    found = LIMITS.resolved({**LIMITS.asked({"table.exec.test.limit": "50"}), "edit": {"left": 9}})
    assert (found.values, edits_of(found)) == ({"left": 9, "right": 50}, {"left": 9})
    assert [set_by(found, name) for name in found.values] == ["edit", "config"]


def test_a_wrong_value_asks_for_nothing() -> None:
    assert LIMITS.asked({"table.exec.test.limit": "many"}) == {"config": {}}


def test_config_and_table_say_what_they_say_now_and_a_hint_what_was_recorded() -> None:
    recorded = {"config": {"lookup.max-retries": 1}, "hint": {"lookup.cache": "FULL"}}
    asked = CACHING.asked({"lookup.max-retries": "5"}, {"lookup.cache": "partial", "url": "x"}, origin=recorded)
    assert asked == {
        "config": {"lookup.max-retries": 5},
        "table": {"lookup.cache": "PARTIAL"},
        "hint": {"lookup.cache": "FULL"},
    }


def test_every_group_of_settings_is_printed_a_setting_a_line() -> None:
    for name in {group.name for kind in KINDS for group in kind.groups}:
        assert print_value({"a": 1}, path=("operators", "*", name)) == '{\n  "a": 1\n}'
