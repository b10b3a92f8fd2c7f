"""Refusal of link-local addresses, where clouds serve their credentials: no run may connect to them.

The driver decides which hosts a run may use (:mod:`hintplan.plans.connectors.policy`). Only the machine that resolves a
name knows its address, so this check runs in the worker, when it opens a source.

>>> is_link_local("169.254.169.254"), is_link_local("10.0.0.1")
(True, False)
"""

from __future__ import annotations

import ipaddress
import socket

from hintplan.plans.errors import RunError


def is_link_local(address: str) -> bool:
    """Return True if an address is link-local: IPv4, IPv6, or IPv4 mapped to IPv6."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_link_local


def refuse_link_local(host: str, port: int, *, path: str) -> None:
    """Raise RunError if ``host`` resolves to a link-local address on this machine.

    An unknown name passes; the connection attempt reports it.
    """
    try:
        addresses = {str(address[4][0]) for address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except OSError:
        return
    if any(is_link_local(address) for address in addresses):
        raise RunError(
            f"the host {host} has a link-local address, which is never allowed",
            hint="such addresses are services of the machine itself, credentials of a cloud among them",
            path=path,
        )
