"""Rehearsals that nobody waits for."""

from support import processes as programs

from dowise_web.sandbox import RehearsalJobs


class Broken:
    """A sandbox that fails as none should."""

    def rehearse(self, *_text, **_settings):
        raise RuntimeError("a secret of ours")


def test_a_rehearsal_that_fails_in_a_way_that_nobody_foresaw_is_over(caplog):
    rehearsals = RehearsalJobs(Broken())
    found = rehearsals.find(rehearsals.start("graph").id)
    assert programs.wait_until(lambda: found.is_finished, 5)
    assert "secret" not in str(found.error) and "log" in str(found.error)
    assert "a secret of ours" in caplog.text
