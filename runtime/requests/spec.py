"""The facts of a run that requests depend on, and the identity of an open object that tasks of a worker share."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRun:
    """The facts of a run that lookups and function calls depend on.

    ``token`` identifies the run; ``once`` is True if the run ends with its input.
    """

    token: str
    allowed_modules: tuple[str, ...] = ()
    allowed_paths: tuple[str, ...] = ()
    time_zone: str = "UTC"
    once: bool = False


def shared_identity(operator: str, *facts: object) -> tuple[str, str]:
    """Return the key of an open object in a worker: the operator, and a digest of ``facts``, which include the run."""
    return operator, hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
