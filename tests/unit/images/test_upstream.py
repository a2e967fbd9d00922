"""The registry client against one that runs here."""

import datetime
import ipaddress
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from reconciler.images import upstream as module
from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.logins import FoundLogin, Login
from reconciler.images.upstream import Upstream, endpoint_url
from tests.unit.images.pictures import Picture, one_platform
from tests.unit.images.played_registry import PlayedRegistry, served

BLOB = bytes(range(256)) * 1000


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedRegistry]:
    monkeypatch.setattr(module, "PAUSES_S", (0.0, 0.0, 0.0))
    with served(PlayedRegistry()) as found:
        yield found


def client(played: PlayedRegistry, login: Login | None = None, remark: str = "") -> Upstream:
    return Upstream(played.url, "example.org", lambda host: FoundLogin(login, remark))


def blob_in(played: PlayedRegistry) -> str:
    picture = Picture()
    digest = picture.add(BLOB)
    played.add(picture)
    return digest


def fetched(source: Upstream, digest: str, offset: int = 0) -> bytes:
    with source.blob("org/x", digest, offset) as chunks:
        return b"".join(chunks)


def failure(source: Upstream, digest: str) -> SupplyError:
    with pytest.raises(SupplyError) as told:
        source.document("org/x", digest)
    return told.value


def test_a_tag_is_the_digest_of_what_it_stands_for(played: PlayedRegistry) -> None:
    picture = one_platform()
    played.add(picture, "v1")
    assert picture.top == client(played).resolve("org/x", "v1")


def test_manifests_and_configs_are_documents_and_a_known_config_costs_one_question(played: PlayedRegistry) -> None:
    picture = one_platform()
    played.add(picture)
    source = client(played)
    config = picture.json(picture.top)["config"]["digest"]
    assert picture.blobs[picture.top] == source.document("org/x", picture.top)
    assert picture.blobs[config] == source.document("org/x", config)
    assert [f"/v2/org/x/manifests/{picture.top}", f"/v2/org/x/blobs/{config}"] == played.paths()
    assert picture.blobs[config] == client(played).document("org/x", config)


def test_a_blob_from_its_beginning_and_from_the_middle(played: PlayedRegistry) -> None:
    digest = blob_in(played)
    assert BLOB == fetched(client(played), digest)
    assert BLOB[1000:] == fetched(client(played), digest, 1000)
    assert ["", "bytes=1000-"] == [item.range for item in played.asked]


def test_a_registry_without_ranges_cannot_go_on_in_the_middle(played: PlayedRegistry) -> None:
    digest = blob_in(played)
    played.has_ranges = False
    with pytest.raises(SupplyError) as told:
        fetched(client(played), digest, 1000)
    assert SupplyErrorKind.REFUSED is told.value.kind


def test_a_blob_that_breaks_off_gives_what_came_and_an_error(played: PlayedRegistry) -> None:
    digest = blob_in(played)
    played.cut_at[digest] = 1000
    came: list[bytes] = []
    with client(played).blob("org/x", digest) as chunks, pytest.raises(SupplyError) as told:
        came.extend(chunks)
    assert (SupplyErrorKind.NO_ANSWER, BLOB[:1000]) == (told.value.kind, b"".join(came))


def test_a_document_that_breaks_off_is_asked_again(played: PlayedRegistry) -> None:
    picture = one_platform()
    played.add(picture)
    played.cut_at[picture.top] = 5
    assert picture.blobs[picture.top] == client(played).document("org/x", picture.top)


def test_other_bytes_are_not_believed(played: PlayedRegistry) -> None:
    picture = one_platform()
    played.add(picture)
    played.lies[picture.top] = b'{"schemaVersion": 2}'
    assert SupplyErrorKind.DAMAGED is failure(client(played), picture.top).kind


def test_what_is_not_there_is_not_found_with_the_url(played: PlayedRegistry) -> None:
    told = failure(client(played), "sha256:" + "0" * 64)
    assert SupplyErrorKind.NOT_FOUND is told.kind
    assert f"{played.url}/v2/org/x/" in told.message


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_bad_day_is_waited_out(played: PlayedRegistry, status: int) -> None:
    picture = one_platform()
    played.add(picture)
    played.bad_days[f"/v2/org/x/manifests/{picture.top}"] = [status, status]
    assert picture.blobs[picture.top] == client(played).document("org/x", picture.top)
    assert 3 == len(played.asked)


def test_too_many_bad_days_are_told(played: PlayedRegistry) -> None:
    played.bad_days["/v2/org/x/manifests/v1"] = [503] * 9
    with pytest.raises(SupplyError, match="status 503") as told:
        client(played).resolve("org/x", "v1")
    assert (SupplyErrorKind.NO_ANSWER, 4) == (told.value.kind, len(played.asked))


def test_another_status_is_not_tried_again(played: PlayedRegistry) -> None:
    played.bad_days["/v2/org/x/manifests/v1"] = [418] * 9
    with pytest.raises(SupplyError) as told:
        client(played).resolve("org/x", "v1")
    assert (SupplyErrorKind.REFUSED, 1) == (told.value.kind, len(played.asked))


def test_nobody_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSES_S", ())
    told = failure(Upstream("http://127.0.0.1:1", "example.org", lambda host: FoundLogin()), "sha256:" + "0" * 64)
    assert SupplyErrorKind.NO_ANSWER is told.kind
    assert "registries.example.org.endpoint" in told.hint


# tokens and logins


def test_a_token_is_asked_for_once_and_used_again(played: PlayedRegistry) -> None:
    played.auth = "bearer"
    digest = blob_in(played)
    source = client(played)
    assert BLOB == fetched(source, digest) == fetched(source, digest)
    tokens = [item for item in played.asked if item.path.startswith("/token")]
    assert ["/token?service=played&scope=repository%3Aorg%2Fx%3Apull"] == [item.path for item in tokens]
    assert 4 == len(played.asked)


def test_a_token_that_is_refused_is_renewed(played: PlayedRegistry) -> None:
    played.auth = "bearer"
    digest = blob_in(played)
    source = client(played)
    fetched(source, digest)
    played.tokens = {"another"}
    assert BLOB == fetched(source, digest)


def test_a_token_is_renewed_before_it_ends(played: PlayedRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    played.auth, played.token_lasts_s = "bearer", 100
    digest = blob_in(played)
    source = client(played)
    fetched(source, digest)
    later = time.monotonic() + 90
    monkeypatch.setattr(time, "monotonic", lambda: later)
    fetched(source, digest)
    assert ["", "", "Bearer token-0", "", "", "Bearer token-1"] == [item.authorization for item in played.asked]


def test_a_password_goes_to_the_token_server(played: PlayedRegistry) -> None:
    played.auth, played.user = "bearer", ("me", "secret")
    digest = blob_in(played)
    assert BLOB == fetched(client(played, Login("me", "secret")), digest)


def test_an_identity_token_is_exchanged(played: PlayedRegistry) -> None:
    played.auth, played.user, played.refresh_token = "bearer", ("nobody", ""), "identity"
    digest = blob_in(played)
    assert BLOB == fetched(client(played, Login("", "", "identity")), digest)
    assert ["POST"] == [item.method for item in played.asked if item.path == "/token"]


def test_a_registry_may_want_the_password_itself(played: PlayedRegistry) -> None:
    played.auth, played.user = "basic", ("me", "secret")
    digest = blob_in(played)
    assert BLOB == fetched(client(played, Login("me", "secret")), digest)


@pytest.mark.parametrize("auth", ["bearer", "basic"])
@pytest.mark.parametrize("login", [None, Login("me", "wrong")])
def test_without_the_right_login_it_is_denied_and_no_secret_is_told(
    played: PlayedRegistry, auth: str, login: Login | None
) -> None:
    played.auth, played.user = auth, ("me", "secret")
    told = failure(client(played, login, "no login for it"), blob_in(played))
    assert SupplyErrorKind.DENIED is told.kind
    assert "docker login example.org" in told.hint
    assert "no login for it; " in told.hint
    assert "wrong" not in f"{told.message}{told.hint}{login!r}"


def test_credentials_never_go_to_another_host(played: PlayedRegistry) -> None:
    with served(PlayedRegistry()) as storage:
        played.auth, played.user, played.blobs_at = "basic", ("me", "secret"), storage.url
        digest = blob_in(played)
        blob_in(storage)
        assert BLOB[7:] == fetched(client(played, Login("me", "secret")), digest, 7)
        assert [("", "bytes=7-")] == [(item.authorization, item.range) for item in storage.asked]


def test_a_storage_that_refuses_gets_no_login_either(played: PlayedRegistry) -> None:
    with served(PlayedRegistry(auth="basic", user=("me", "secret"))) as storage:
        storage.url = storage.url.replace("127.0.0.1", "localhost")
        played.blobs_at = storage.url
        with pytest.raises(SupplyError) as told:
            fetched(client(played, Login("me", "secret")), blob_in(played))
        assert SupplyErrorKind.DENIED is told.value.kind
        assert [""] == [item.authorization for item in storage.asked]


# TLS


def certificate(folder: Path) -> ssl.SSLContext:
    """A server's context with a certificate that nobody knows; its authority is written to `folder`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "played")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    (folder / "key").write_bytes(key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.crt", folder / "key")
    return context


def test_a_certificate_is_believed_where_docker_was_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "example.org"
    folder.mkdir()
    picture = one_platform()
    with served(PlayedRegistry(), certificate(folder)) as played:
        played.add(picture, "v1")
        monkeypatch.setattr(module, "CERTIFICATES", tmp_path)
        assert picture.top == client(played).resolve("org/x", "v1")
        monkeypatch.setattr(module, "CERTIFICATES", tmp_path / "none")
        told = failure(client(played), picture.top)
        assert SupplyErrorKind.NO_ANSWER is told.kind
        assert "example.org/ca.crt" in told.hint


def test_a_login_is_not_sent_unencrypted_by_a_registry_that_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "example.org"
    folder.mkdir()
    monkeypatch.setattr(module, "CERTIFICATES", tmp_path)
    with served(PlayedRegistry()) as plain, served(PlayedRegistry(auth="bearer"), certificate(folder)) as played:
        secure, played.url = played.url, plain.url
        source = Upstream(secure, "example.org", lambda host: FoundLogin(Login("me", "secret")))
        assert SupplyErrorKind.REFUSED is failure(source, blob_in(played)).kind
        assert [] == plain.asked


@pytest.mark.parametrize(
    ("registry", "url"),
    [
        ("docker.io", "https://registry-1.docker.io"),
        ("ghcr.io", "https://ghcr.io"),
        ("localhost:5000", "http://localhost:5000"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("[::1]:5000", "http://[::1]:5000"),
        ("declared.example", "http://10.0.0.1:5000"),
    ],
)
def test_where_a_registry_is_asked(registry: str, url: str) -> None:
    assert url == endpoint_url(registry, {"declared.example": "http://10.0.0.1:5000/"})
