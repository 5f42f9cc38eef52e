"""Small crowds at a real server; evidence/load.py has the whole minute with fifty."""

import pytest
from support.load_clients import check_the_journal, crowd


@pytest.mark.slow
def test_many_clients_get_no_errors_and_the_journal_is_complete(tmp_path):
    heard = crowd(tmp_path / "ward.db", clients=10, seconds=6, seed=1)
    assert not heard.failures
    assert not heard.repeated and heard.streamed > 10
    assert len({kind for kind, _ in heard.seconds}) == 8
    decisions, events = check_the_journal(tmp_path / "ward.db", heard)
    assert decisions >= 10 and events == 1 + decisions + len(heard.told)


@pytest.mark.slow
def test_a_killed_server_loses_and_repeats_no_confirmed_write(tmp_path):
    heard = crowd(tmp_path / "ward.db", clients=10, seconds=8, seed=2, kills=2)
    assert not heard.failures
    assert heard.repeated >= 5
    decisions, _ = check_the_journal(tmp_path / "ward.db", heard)
    assert decisions >= 10
