"""Tells public internet addresses from private and special ones, and this machine from others."""

import ipaddress
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# these prefixes embed an IPv4 address, which may be a private one
_TUNNELS = tuple(
    ipaddress.ip_network(network) for network in ("::ffff:0:0/96", "::/96", "2002::/16", "2001::/32", "64:ff9b:1::/48")
)
# special by the registries of IANA; what `is_global` says about them differs between versions of Python
_SPECIAL = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "169.254.0.0/16"),
        *("100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7"),
        *("fe80::/10", "fec0::/10", "ff00::/8"),
    )
)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host. A name that needs a lookup counts as no."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_public(address: Address) -> bool:
    """Tell whether an address is on the public internet: not private, not special, not a tunnel to such an address."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:  # translated to the IPv4 address in its last 32 bits
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.is_site_local or any(address in network for network in _TUNNELS):
            return False
    if any(address in network for network in _SPECIAL):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
