"""What is said of errors names no place of the store, and says all the rest as it was."""

import pytest

from dowise.experiment.storage import open_storage
from dowise.service.house import House


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda name: House(open_storage(name, create=True))


@pytest.mark.parametrize("name", ["a", "ward"])
def test_a_store_with_the_name_of_a_word_leaves_words_alone(house, tmp_path, name):
    said = "there is no decision 9 in a ward: nothing was asked yet"
    found = house(name)
    assert found.discreet(said) == said
    assert str(tmp_path) not in found.discreet(f"{tmp_path / name} can't be read")


@pytest.mark.parametrize("name", ["ward.db", "./ward", "../ward.db"])
def test_a_place_is_not_told(house, tmp_path, name):
    said = house(name).discreet(f"{name} in {tmp_path} and {(tmp_path / name).resolve()}")
    assert "ward" not in said and str(tmp_path) not in said
