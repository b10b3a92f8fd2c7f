"""Servers that no run asks, whatever it is allowed to: link-local addresses, where clouds keep their credentials.

Which hosts a run may ask is decided on the driver (:mod:`hintplan.plans.connectors.policy`). What a name means is only
known where it is looked up, so this is asked in the worker, when a source is opened.

>>> is_link_local("169.254.169.254"), is_link_local("10.0.0.1")
(True, False)
"""

from __future__ import annotations

import ipaddress
import socket

from hintplan.plans.errors import RunError


def is_link_local(address: str) -> bool:
    """Whether an address, IPv4, IPv6 or the one in the other, is link-local."""
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_link_local


def refuse_link_local(host: str, port: int, *, path: str) -> None:
    """RunError if ``host`` means a link-local address here. A name that means nothing is left to who asks it."""
    try:
        found = {str(address[4][0]) for address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except OSError:
        return
    if any(is_link_local(address) for address in found):
        raise RunError(
            f"the host {host} has a link-local address, which no run asks",
            hint="such addresses are services of the machine itself, credentials of a cloud among them",
            path=path,
        )
