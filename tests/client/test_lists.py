"""Lists that come in several answers."""

import pytest

from dowise import Client
from dowise.client import client as looks
from dowise.client.transport import Transport


@pytest.fixture
def ward(empty):
    """An experiment with 150 decisions."""
    with Client.create(
        empty.url, "many", "task1", "ucb", seed=1, token=empty.tokens["admin"]
    ) as made:
        made.ask_many([None] * 150)
        yield made


@pytest.mark.slow
def test_a_long_list_takes_few_requests_and_is_whole_in_any_number_of_them(ward, monkeypatch):
    asked, send = [], Transport.get

    def counted(line, path, *rest, **query):
        asked.append(path)
        return send(line, path, *rest, **query)

    monkeypatch.setattr(Transport, "get", counted)
    whole, events = ward.records(), ward.events()
    assert [case.id for case in whole] == [*range(1, 151)]
    assert [event.number for event in events] == [*range(1, 152)]
    assert len(asked) == 2
    monkeypatch.setattr(looks, "MAX_ROWS", 40)
    assert ward.records() == whole
    assert ward.events() == events
    assert len(asked) == 2 + 4 + 4
