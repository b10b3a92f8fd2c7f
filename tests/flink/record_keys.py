"""Asks Flink which configuration keys it has, and writes them with their types and defaults to keys.json.

Every ``ConfigOption`` that a public class of Flink's own jars holds in a static field. Runs in an environment of its
own, which has apache-flink and nothing of ours: ``make flink-goldens``.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pyflink
from pyflink.java_gateway import get_gateway

HERE = Path(__file__).parent
PREFIXES = ("table.", "pipeline.", "execution.", "parallelism.", "restart-strategy", "state.", "sql-client.")


def _classes() -> list[str]:
    """The classes whose names say that they hold options, in all jars of Flink."""
    found = set()
    for jar in sorted((Path(pyflink.__file__).parent).glob("*/*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                plain = name.removesuffix(".class").replace("/", ".")
                stem = plain.rpartition(".")[2]
                if (
                    plain.startswith("org.apache.flink.")
                    and name.endswith(".class")
                    and "Options" in stem
                    and "Format" not in stem
                ):
                    found.add(plain)
    return sorted(found)


def main() -> None:
    gateway = get_gateway()
    jvm: Any = gateway.jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    found: dict[str, dict[str, str | None]] = {}
    for name in _classes():
        try:
            holder = jvm.java.lang.Class.forName(name, False, loader)
            fields = list(holder.getDeclaredFields())
        except Exception:  # noqa: BLE001 - a class of a jar that is not on the path
            continue
        for field in fields:
            if field.getType().getName() != "org.apache.flink.configuration.ConfigOption":
                continue
            if not jvm.java.lang.reflect.Modifier.isStatic(field.getModifiers()):
                continue
            try:
                field.setAccessible(True)
                option = field.get(None)
            except Exception:  # noqa: BLE001
                continue
            if option is None or not option.key().startswith(PREFIXES):
                continue
            default = option.defaultValue()
            found[option.key()] = {
                "default": None if default is None else str(default),
                "in": name.rpartition(".")[2],
            }
            for fallback in option.fallbackKeys():
                found.setdefault(
                    fallback.getKey(), {"default": None, "in": name.rpartition(".")[2], "now": option.key()}
                )
    text = ",\n".join(f"  {json.dumps(k)}: {json.dumps(found[k], sort_keys=True)}" for k in sorted(found))
    (HERE / "keys.json").write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
