import datetime as dt
from ipaddress import ip_address
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from admitter.sandbox.certificates import Authority, write_signing_keys
from admitter.sandbox.cluster import certificate_kubeconfig, token_kubeconfig, write_kubeconfig


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki")


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def policy(authority: Authority) -> PolicyBuilder:
    return PolicyBuilder().store(Store([read(authority.certificate)]))


def test_a_server_is_trusted_under_its_names_only(authority: Authority) -> None:
    authority.issue_server("server", ["127.0.0.1", "localhost"])
    certificate = read(authority.folder / "server.crt")
    for name in (x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")):
        assert policy(authority).build_server_verifier(name).verify(certificate, [])
    with pytest.raises(VerificationError):
        policy(authority).build_server_verifier(x509.DNSName("elsewhere")).verify(certificate, [])


def test_another_authority_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    other.issue_server("server", ["localhost"])
    verifier = policy(authority).build_server_verifier(x509.DNSName("localhost"))
    with pytest.raises(VerificationError):
        verifier.verify(read(other.folder / "server.crt"), [])


def test_a_client_has_its_user_and_groups_and_is_no_server(authority: Authority) -> None:
    authority.issue_client("admin", "alice", ["system:masters", "friends"])
    subject = read(authority.folder / "admin.crt").subject
    assert [each.value for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["alice"]
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [each.value for each in groups] == ["system:masters", "friends"]
    verifier = policy(authority).build_server_verifier(x509.DNSName("alice"))
    with pytest.raises(VerificationError):
        verifier.verify(read(authority.folder / "admin.crt"), [])


def test_certificates_hold_for_a_year_from_an_hour_ago(authority: Authority) -> None:
    authority.issue_client("admin", "alice")
    certificate = read(authority.folder / "admin.crt")
    now = dt.datetime.now(dt.UTC)
    assert certificate.not_valid_before_utc < now - dt.timedelta(minutes=55)
    assert certificate.not_valid_after_utc > now + dt.timedelta(days=364)


def test_keys_are_the_users_alone_and_the_authoritys_is_not_written(authority: Authority) -> None:
    authority.issue_server("server", ["localhost"])
    authority.issue_client("client", "alice")
    write_signing_keys(authority.folder)
    files = {path.name: path for path in authority.folder.iterdir()}
    assert sorted(files) == [
        "ca.crt", "client.crt", "client.key", "sa.key", "sa.pub", "server.crt", "server.key",
    ]  # fmt: skip
    assert authority.folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in files.values())
    for name in ("client", "server"):
        key = load_pem_private_key(files[f"{name}.key"].read_bytes(), None)
        assert key.public_key() == read(files[f"{name}.crt"]).public_key()


def test_a_kubeconfig_embeds_what_it_needs_and_is_the_users_alone(
    authority: Authority, tmp_path: Path
) -> None:
    authority.issue_client("admin", "alice")
    content = certificate_kubeconfig(
        "https://127.0.0.1:6443", authority.certificate, authority.folder / "admin.crt"
    )
    path = tmp_path / "deep" / "kubeconfig"
    write_kubeconfig(path, content)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["kubeconfig"]
    assert yaml.safe_load(path.read_text()) == content
    assert set(content["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
    assert content["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"

    other = token_kubeconfig(content["clusters"][0]["cluster"], "secret")
    assert other["clusters"] == content["clusters"]
    assert other["users"][0]["user"] == {"token": "secret"}
