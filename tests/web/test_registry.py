"""Messages of the registry do not name the location of the store."""

import pytest

from dowise.experiment.storage import open_storage
from dowise_web.registry import ExperimentRegistry


@pytest.fixture
def registry_at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda name: ExperimentRegistry(open_storage(name, create=True))


@pytest.mark.parametrize("name", ["a", "ward"])
def test_a_store_named_like_a_word_does_not_change_messages(registry_at, tmp_path, name):
    message = "there is no decision 9 in a ward: there is none yet"
    registry = registry_at(name)
    assert registry.redact(message) == message
    assert str(tmp_path) not in registry.redact(f"{tmp_path / name} can't be read")


@pytest.mark.parametrize("name", ["ward.db", "./ward", "../ward.db"])
def test_paths_of_the_store_are_redacted(registry_at, tmp_path, name):
    message = registry_at(name).redact(f"{name} in {tmp_path} and {(tmp_path / name).resolve()}")
    assert "ward" not in message and str(tmp_path) not in message


PRIVATE = ("127.0.0.1", "port 1", "annette", "trials", "postgresql", "s3cret")


def test_only_the_log_names_the_database(ward, monkeypatch, caplog):
    """The driver quotes host and port of a server that it could not reach."""

    def names():
        open_storage("postgresql://annette:s3cret@127.0.0.1:1/trials")

    client, browser = ward.client(), ward.browser()
    shown = "postgresql://annette@127.0.0.1:1/trials"
    monkeypatch.setattr(type(ward.storage), "__str__", lambda _: shown)
    monkeypatch.setattr(ward.registry, "names", names)
    for answer in (client.get("/api/experiments"), browser.get("/?all")):
        assert answer.status_code == 503
        assert "try again in a while; the server" in answer.text
        assert not [part for part in PRIVATE if part in answer.text]
    assert (
        caplog.text.count("127.0.0.1:1/trials: can't open the store: ") == 2
        and "s3cret" not in caplog.text
    )


def test_errors_of_a_file_are_reported_and_logged(registry_at, caplog):
    message = registry_at("ward.db").redact(
        "ward.db: can't write to 'a': the disk is full: free some space"
    )
    assert message == "the store: can't write to 'a': the disk is full: free some space"
    assert "the disk is full" in caplog.text
