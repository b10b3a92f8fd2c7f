"""Completions after the name of a plan: its operators, and the paths of its settings with their values.

This module reads only the plan's JSON, without checks or model, because the shell waits at every key. Completions end
up on a command line, and anyone may have written the plan, so only names of plain characters are offered.

>>> plan = {"operators": [{"id": "join_o_c", "state": [{"name": "leftState", "ttl": "3 d", "origin": {}}]}]}
>>> [offer.text for offer in assignments(plan, "jo")]
['join_o_c.state.leftState.ttl=']
>>> [offer.text for offer in assignments(plan, "join_o_c.state.leftState.ttl=")]
['join_o_c.state.leftState.ttl=3 d']
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hintplan.plans.frozen import frozen

if TYPE_CHECKING:
    from hintplan.plans.settings.setting import Setting

Json = Mapping[str, Any]

_LARGEST = 16 * 2**20
_AT_ONCE = 24
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. :-]*")


@frozen
class Offer:
    """A completion, and a short description."""

    text: str
    help: str = ""


def readable_document(path: str) -> Json | None:
    """Return the JSON of the plan at ``path``, or None if it is no plan or cannot be read."""
    try:
        with open(path, "rb") as stream:
            document = json.loads(stream.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and isinstance(document.get("operators"), list) else None


def operators(document: Json) -> Iterator[Offer]:
    """Yield the ids of the operators."""
    for operator in _dicts(document.get("operators")):
        if _plain(operator.get("id")):
            yield Offer(text=operator["id"], help=_plain_help(operator.get("op")))


def setting_paths(document: Json, typed: str = "") -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Yield path, value and layers of every setting of operators, configuration and tables.

    For the operator that ``typed`` begins with, include optional settings that the plan does not have.
    """
    for operator in _dicts(document.get("operators")):
        name = operator.get("id")
        if not _plain(name):
            continue
        if typed.startswith(f"{name}."):
            yield from _unasked(operator, document)
        for entry in _dicts(operator.get("state")):
            if _plain(entry.get("name")):
                yield f"{name}.state.{entry['name']}.ttl", entry.get("ttl"), _dict(entry.get("origin"))
        for group, settings in operator.items():
            if isinstance(settings, dict) and "origin" in settings and _plain(group):
                origin = _dict(settings["origin"])
                for setting, value in settings.items():
                    if setting != "origin" and _plain(setting):
                        layers = {layer: _dict(values).get(setting) for layer, values in origin.items()}
                        yield f"{name}.{group}.{setting}", value, layers
    for key, value in _dict(document.get("config")).items():
        if _plain(key):
            yield f"config.{key}", value, {}
    for table, declared in _dict(document.get("tables")).items():
        for option, value in _dict(_dict(declared).get("options")).items():
            if option != "connector" and _plain(table) and _plain(option):
                yield f"tables.{table}.options.{option}", value, {}


def assignments(document: Json, typed: str) -> list[Offer]:
    """Return the paths that begin with ``typed``, each with ``=``; after ``=``, the values of layers and choices."""
    path, equals, _ = typed.partition("=")
    if equals:
        for setting_path, value, layers in setting_paths(document, path):
            if setting_path == path:
                offered = {_text(value): "what runs"} | {
                    _text(v): layer for layer, v in layers.items() if v is not None
                }
                offered |= dict.fromkeys(_choices(setting_path), "")
                texts = ((text, words) for text, words in offered.items() if _PLAIN_VALUE.fullmatch(text))
                return [Offer(text=f"{path}={text}", help=words) for text, words in texts]
        return [Offer(text=f"{path}={text}") for text in _choices(path)]
    paths = {setting_path: _plain_help(_text(value)) for setting_path, value, _ in setting_paths(document, path)}
    if path.startswith("config."):
        paths |= {f"config.{key}": words for key, words in _config_keys().items() if f"config.{key}" not in paths}
    elif "config.".startswith(path):
        paths.setdefault("config.", "settings of the whole job")
    offers = [
        Offer(text=setting_path if setting_path.endswith(".") else f"{setting_path}=", help=words)
        for setting_path, words in paths.items()
        if setting_path.startswith(path)
    ]
    return stepwise(offers, path)


def stepwise(offers: list[Offer], typed: str) -> list[Offer]:
    """Return ``offers``, or if there are too many, their distinct beginnings up to the next dot."""
    while len(offers) > _AT_ONCE:
        steps: dict[str, int] = {}
        for offer in offers:
            end = offer.text.find(".", len(typed))
            step = offer.text if end < 0 else offer.text[: end + 1]
            steps[step] = steps.get(step, 0) + 1
        if len(steps) > 1:
            return [Offer(text=step, help=f"{count} settings" if count > 1 else "") for step, count in steps.items()]
        (typed,) = steps
    return offers


def _unasked(operator: Json, document: Json) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Yield path and default of each optional setting that the operator lacks.

    The import of the operators is slow, so this runs only once the id of an operator has been typed.
    """
    from hintplan.plans.operators import BY_OP

    kind = BY_OP.get(str(operator.get("op")))
    for group in kind.groups if kind is not None else ():
        if group.optional and group.name not in operator and group.mode in (None, document.get("mode", "streaming")):
            for setting in group.settings.values():
                if setting.default is not None:
                    yield f"{operator['id']}.{group.name}.{setting.name}", setting.default, {}


def _choices(path: str) -> Iterable[str]:
    """Return the values of a setting if they are few; the slow imports happen only here."""
    from hintplan.plans.model.config import KEYS
    from hintplan.plans.operators import KINDS

    setting: Setting | None
    if path.startswith("config."):
        setting = KEYS.get(path.removeprefix("config."))
    else:
        _, group, name = (*path.split(".", 2), "", "")[:3]
        groups = [candidate for kind in KINDS for candidate in kind.groups]
        # If a group has a single setting, the name of the group is its path.
        setting = next((candidate.settings[group] for candidate in groups if [*candidate.settings] == [group]), None)
        setting = next(
            (
                candidate.settings[name]
                for candidate in groups
                if candidate.name == group and name in candidate.settings
            ),
            setting,
        )
    return () if setting is None else setting.offered


def _config_keys() -> dict[str, str]:
    from hintplan.plans.model.config import KEYS

    return {key: spec.description for key, spec in KEYS.items() if spec.in_config}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(name: object) -> bool:
    return isinstance(name, str) and _PLAIN.fullmatch(name) is not None


def _plain_help(value: object) -> str:
    return value if isinstance(value, str) and _PLAIN_VALUE.fullmatch(value) else ""


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> Iterator[Mapping[str, Any]]:
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
