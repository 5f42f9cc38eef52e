"""Ten clients at a real server; evidence/load.py runs fifty for a minute."""

import pytest
from support.load_clients import check_journal, run_load


@pytest.mark.slow
def test_many_clients_get_no_errors_and_the_journal_is_complete(tmp_path):
    report = run_load(tmp_path / "ward.db", 10, seconds=5, seed=1)
    assert not report.failures
    assert not report.repeated and report.streamed > 10
    assert len({kind for kind, _ in report.seconds}) == 8
    decisions, events = check_journal(tmp_path / "ward.db", report)
    assert decisions >= 8 and events == 1 + decisions + len(report.told)


@pytest.mark.slow
def test_a_killed_server_loses_and_repeats_no_confirmed_write(tmp_path):
    report = run_load(tmp_path / "ward.db", 10, seconds=6, seed=2, kills=2)
    assert not report.failures
    assert report.repeated >= 5
    decisions, _ = check_journal(tmp_path / "ward.db", report)
    assert decisions >= 8
