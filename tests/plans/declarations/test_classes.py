"""Classes by name: which modules may be imported for them, and what is said of those that may not or cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hintplan.plans.declarations.classes import (
    FUNCTIONS,
    LOOKUPS,
    ClassRefusal,
    importable_from,
    is_allowed,
    load_named_class,
)


def refused(name: str, *modules: str) -> ClassRefusal:
    with pytest.raises(ClassRefusal) as caught:
        load_named_class(name, modules, group=FUNCTIONS, needed="put it beside the script")
    return caught.value


@pytest.mark.parametrize("allowed", [(), ("sh",), ("shop.rate",), ("shop.rates.Rates",), ("shop.rates.deep",)])
def test_a_module_is_not_imported_unless_it_is_allowed(tmp_path: Path, allowed: tuple[str, ...]) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "rates.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    with importable_from([str(tmp_path)]):
        error = refused("shop.rates.Rates", *allowed)
    assert str(error) == "the class shop.rates.Rates may not be loaded: module shop.rates is not allowed"
    assert error.hint == "allow it: --allow-module shop.rates"


def test_a_class_beside_the_script_is_found_and_the_path_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "beside_script.py").write_text("class Locate: pass", encoding="utf-8")
    before = list(sys.path)
    with importable_from([str(tmp_path)]):
        found = load_named_class("beside_script.Locate", ("beside_script",), group=FUNCTIONS, needed="")
    assert found.__name__ == "Locate"
    assert sys.path == before


def test_a_file_beside_the_script_does_not_take_the_place_of_a_library(tmp_path: Path) -> None:
    (tmp_path / "wave.py").write_text("class Locate: pass", encoding="utf-8")
    sys.modules.pop("wave", None)
    with importable_from([str(tmp_path)]):
        assert "Locate in module wave is not there" in str(refused("wave.Locate", "wave"))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "the class {module}.Locate cannot be loaded: No module named '{module}'"),
        ("import nothing_of_that_name", "cannot be loaded: No module named 'nothing_of_that_name'"),
        ("def broken(", "cannot be loaded: '(' was never closed"),
        ("nothing", "cannot be loaded: name 'nothing' is not defined"),
        ("", "Locate in module {module} is not there"),
        ("Locate = 3", "Locate in module {module} is no class"),
    ],
)
def test_a_class_that_is_not_to_be_had_is_refused_in_words(tmp_path: Path, source: str | None, message: str) -> None:
    module = f"classes_{abs(hash(message)) % 10**6}"
    if source is not None:
        (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
    with importable_from([str(tmp_path)]):
        error = refused(f"{module}.Locate", module)
    assert message.format(module=module) in str(error)
    if "cannot be loaded" in str(error):
        assert error.hint == "put it beside the script"


def test_entry_points_allow_classes_of_their_own_group_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    entry = EntryPoint(name="rates", value="shop.rates:Rates", group=LOOKUPS)
    monkeypatch.setattr(
        "hintplan.plans.declarations.classes.entry_points", lambda group: [entry] if group == LOOKUPS else []
    )
    assert is_allowed("shop.rates.Rates", (), group=LOOKUPS)
    assert not is_allowed("shop.rates.Rates", (), group=FUNCTIONS)
    assert not is_allowed("shop.rates.Other", (), group=LOOKUPS)
