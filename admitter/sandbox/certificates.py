"""The certificates and keys of one control plane, made by an authority that lives only in memory."""

import datetime as dt
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=365)
_CLOCK_SKEW = dt.timedelta(hours=1)


class Authority:
    """Signs the certificates of one control plane.

    The folder receives `ca.crt`, and `<name>.crt` and `<name>.key` of each certificate; readable by the user
    alone. The authority's own key is never written.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("admitter-sandbox")
        certificate = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.crt"
        _write(self.certificate, certificate.public_bytes(serialization.Encoding.PEM))

    def issue_server(self, name: str, hosts: Sequence[str]) -> None:
        """Write a certificate of a server that is reached by these addresses and host names.

        It also proves the server as a client: members of etcd connect to each other with it.
        """
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        self._issue(name, _subject(name), purposes, names)

    def issue_client(self, name: str, user: str, groups: Sequence[str] = ()) -> None:
        """Write a certificate that authenticates a user of the API server, with the user's groups."""
        self._issue(name, _subject(user, groups), [ExtendedKeyUsageOID.CLIENT_AUTH])

    def _issue(
        self,
        name: str,
        subject: x509.Name,
        purposes: list[x509.ObjectIdentifier],
        hosts: x509.SubjectAlternativeName | None = None,
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if hosts:
            builder = builder.add_extension(hosts, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        _write(self.folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))
        _write(self.folder / f"{name}.key", _private(key))


def write_signing_keys(folder: Path) -> None:
    """Write the pair that signs and checks service accounts' tokens: `sa.key`, `sa.pub`."""
    key = ec.generate_private_key(ec.SECP256R1())
    _write(folder / "sa.key", _private(key))
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _write(folder / "sa.pub", public)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFETIME)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _subject(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
