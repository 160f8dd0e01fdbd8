"""A certificate authority of one process, for the hosts that get secrets: their requests must be read to be filled.

Its key never leaves the memory; its certificate names the only hosts it may vouch for.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from limpet.egress.hosts import Host

if TYPE_CHECKING:
    from cryptography import x509

LIFE = timedelta(days=365)
LEAF_LIFE = timedelta(days=7)
SKEW = timedelta(hours=1)
ROOTS = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where systems keep the certificates they trust, beside the place that OpenSSL names."""


class Authority:
    """Vouches for `hosts`. Making one takes a few milliseconds, and `cryptography` is imported then."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        self._key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"Limpet egress {os.urandom(4).hex()}")])
        self._certificate = self._own(hosts)
        self._contexts: dict[str, tuple[datetime, ssl.SSLContext]] = {}

    @property
    def pem(self) -> bytes:
        """The certificate that commands are to trust."""
        from cryptography.hazmat.primitives.serialization import Encoding

        return self._certificate.public_bytes(Encoding.PEM)

    def context(self, host: str) -> ssl.SSLContext:
        """For the server's side of a connection that speaks as `host`."""
        now = datetime.now(UTC)
        until, context = self._contexts.get(host, (now, None))
        if context is None or until - now < LEAF_LIFE / 4:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.set_alpn_protocols(["http/1.1"])
            self._load(context, host, now)
            self._contexts[host] = (now + LEAF_LIFE, context)
        return context

    def _own(self, hosts: Iterable[Host]) -> x509.Certificate:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        permitted = list(dict.fromkeys(_constraint(host.name) for host in hosts))
        now = datetime.now(UTC)
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=False,
            encipher_only=False,
            decipher_only=False,
        )
        return (
            x509.CertificateBuilder(self._name, self._name, self._key.public_key(), x509.random_serial_number())
            .not_valid_before(now - SKEW)
            .not_valid_after(now + LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.NameConstraints(permitted, None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _leaf(self, host: str, now: datetime) -> x509.Certificate:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.x509.oid import ExtendedKeyUsageOID

        public = self._key.public_key()
        subject = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "Limpet egress")])
        return (
            x509.CertificateBuilder(self._name, subject, self._leaf_key.public_key(), x509.random_serial_number())
            .not_valid_before(now - SKEW)
            .not_valid_after(now + LEAF_LIFE)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([_general(host)]), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._leaf_key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _load(self, context: ssl.SSLContext, host: str, now: datetime) -> None:
        """`ssl` takes keys from files only: one without a name, which is gone when it is closed."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = self._leaf_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        descriptor = os.memfd_create("limpet-egress", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, self._leaf(host, now).public_bytes(Encoding.PEM) + key)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)


def system_roots() -> bytes:
    """The certificates that this system trusts, as one PEM file; empty where they are not found."""
    for path in (ssl.get_default_verify_paths().cafile, *ROOTS):
        if path and os.path.isfile(path):
            return Path(path).read_bytes().rstrip(b"\n") + b"\n"
    return b""


def _general(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _constraint(name: str) -> x509.GeneralName:
    """What permits certificates for the rule `name`: `domain` stands for everything beneath it too."""
    from cryptography import x509

    try:
        return x509.IPAddress(ip_network(name))
    except ValueError:
        return x509.DNSName(name.removeprefix("*."))
