"""A real Dask scheduler with worker processes, one of which is killed during the run."""

import json
import os
import signal

import pytest
from support.custom_policies import GREEDY
from support.processes import kill_session, start_python, wait_until

from dowise import DowiseError, simulate
from dowise.policies import registry
from dowise.policies import registry as own

RACE = {"horizon": 200, "trials": 60, "seed": 2, "options": {"ids": {"samples": 200}}}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Dask's own, when a worker disappears
def test_a_cluster_survives_the_death_of_a_worker():
    distributed = pytest.importorskip("distributed")
    expected = simulate(["task3"], ["ids", "ts"], **RACE).frame()
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        victims = []

        def kill_one(done, _total):
            if done >= 1 and not victims:
                victims.append(next(iter(cluster.workers.values())).pid)
                os.kill(victims[0], signal.SIGKILL)

        found = simulate(
            ["task3"], ["ids", "ts"], **RACE, cluster=cluster.scheduler_address, progress=kill_one
        )
        assert victims
    assert found.frame().equals(expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_policy_of_one_s_own_is_sent_to_machines_that_lack_it(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(registry, "_POLICIES", {**registry._POLICIES})
    monkeypatch.setattr(own, "_MODULES", {})
    race = {"horizon": 5, "trials": 2}
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        (tmp_path / "sent_mine.py").write_text(GREEDY)  # where the worker does not look
        monkeypatch.syspath_prepend(tmp_path)
        policies, address = ["ucb", "sent_mine:Greedy"], cluster.scheduler_address
        found = simulate(["task1"], policies, **race, cluster=address)
        with pytest.raises(DowiseError, match=r"Failing on task1, trial 0: ZeroDivisionError"):
            simulate(["task1"], ["sent_mine:Failing"], **race, cluster=address)
    assert found.frame().equals(simulate(["task1"], policies, **race).frame())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_address_without_a_scheduler_is_explained():
    pytest.importorskip("distributed")
    with pytest.raises(DowiseError, match="no Dask scheduler answers at tcp://127.0.0.1:9"):
        simulate(["task1"], ["ts"], horizon=3, trials=1, cluster="tcp://127.0.0.1:9")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_lost_is_one_clear_message(tmp_path, caplog):
    pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    options = ("--no-dashboard", "--scheduler-file", file)
    scheduler = start_python(
        "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *options
    )
    worker = start_python(
        "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *options
    )
    try:
        assert wait_until(file.exists)
        address = json.loads(file.read_text())["address"]

        def kill(done, _total):
            if done == 1:
                scheduler.kill()

        with pytest.raises(DowiseError, match=f"lost the Dask scheduler at {address}"):
            simulate(["task3"], ["ids"], 1000, 600, cluster=address, progress=kill)
    finally:
        kill_session(scheduler)
        kill_session(worker)
    assert not caplog.records
