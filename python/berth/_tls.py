"""Connections to a URL of berthd: plain on this machine, TLS with a pinned key to another.

A fingerprint is the SHA-256 of the server's public key in base64url.  It stands behind the
address (https://HOST:PORT#FINGERPRINT), or is the last part of a token.
"""
import base64
import hashlib
import http.client
import ipaddress
import re
import ssl
import urllib.parse

PART = r"[A-Za-z0-9_-]{43}"


def _element(data, at):
    """One element of DER: its tag, where its content begins and where it ends."""
    tag, count, start = data[at], data[at + 1], at + 2
    if count & 0x80:
        more = count & 0x7F
        count = int.from_bytes(data[start:start + more], "big")
        start += more
    if start + count > len(data):
        raise ValueError("the certificate is cut off")
    return tag, start, start + count


def fingerprint(certificate):
    """That of the public key in a certificate, which is DER."""
    at = _element(certificate, _element(certificate, 0)[1])[1]  # into the signed part
    if certificate[at] == 0xA0:  # the version, which may be absent
        at = _element(certificate, at)[2]
    for _ in range(5):  # number, algorithm, issuer, validity, subject
        at = _element(certificate, at)[2]
    key = certificate[at:_element(certificate, at)[2]]
    return base64.urlsafe_b64encode(hashlib.sha256(key).digest()).decode("ascii").rstrip("=")


class _PinnedConnection(http.client.HTTPSConnection):
    """Whom it talks to is known by the key: no chain and no name has to say it."""

    def __init__(self, host, port, timeout, pin):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        super().__init__(host, port, timeout=timeout, context=context)
        self._pin = pin

    def connect(self):
        super().connect()
        if fingerprint(self.sock.getpeercert(binary_form=True)) != self._pin:
            self.close()
            raise ConnectionError("the key of its certificate has another fingerprint than "
                                  "the token or the address says; nothing was sent")


def _is_this_machine(host):
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def connect(address, timeout, token=None):
    """A connection, which connects with its first request.  ValueError: wrong address."""
    url = urllib.parse.urlsplit(address)
    if url.scheme not in ("http", "https") or not url.hostname or url.username is not None:
        raise ValueError(f"the address is {address!r}, want a socket's path or a URL")
    if url.scheme == "http":
        if not _is_this_machine(url.hostname):
            raise ValueError(f"{address}: http:// is for this machine only; use https:// for "
                             "another")
        return http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)
    if url.fragment and not re.fullmatch(PART, url.fragment):
        raise ValueError(f"{address}: want the fingerprint of berthd's key behind the #")
    in_token = re.fullmatch(rf"bt1\.[0-9]+\.{PART}\.({PART})", token or "")
    pin = url.fragment or (in_token.group(1) if in_token else None)
    if pin:
        return _PinnedConnection(url.hostname, url.port, timeout, pin)
    return http.client.HTTPSConnection(url.hostname, url.port, timeout=timeout)
