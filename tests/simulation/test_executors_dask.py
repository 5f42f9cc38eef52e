"""A real Dask scheduler with worker processes, one of which is killed during the run."""

import json
import os
import signal

import pytest
from support.custom_policies import GREEDY
from support.errors import raises_code
from support.processes import kill_session, start_python, wait_until

from dowise import simulate
from dowise.policies import registry

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Dask's own, when a worker disappears
]


def local_cluster(workers):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    )


def test_death_of_a_worker_does_not_change_the_results():
    spec = {"horizon": 200, "trials": 60, "seed": 2, "options": {"ids": {"samples": 200}}}
    expected = simulate(["task3"], ["ids", "ts"], **spec).frame()
    killed = []
    with local_cluster(2) as cluster:

        def kill_a_worker(finished, _total):
            if finished >= 1 and not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        options = {"cluster": cluster.scheduler_address, "progress": kill_a_worker}
        result = simulate(["task3"], ["ids", "ts"], **spec, **options)
    assert killed and result.frame().equals(expected)


def test_custom_policy_is_sent_to_workers_without_its_module(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_POLICIES", {**registry._POLICIES})
    monkeypatch.setattr(registry, "_MODULES", {})
    spec, policies = {"horizon": 5, "trials": 2}, ["ucb", "sent_mine:Greedy"]
    with local_cluster(1) as cluster:
        (tmp_path / "sent_mine.py").write_text(GREEDY)  # in a folder that the worker lacks
        monkeypatch.syspath_prepend(tmp_path)
        address = cluster.scheduler_address
        result = simulate(["task1"], policies, **spec, cluster=address)
        with raises_code("user-code-failed", "Failing on task1, trial 0: ZeroDivisionError"):
            simulate(["task1"], ["sent_mine:Failing"], **spec, cluster=address)
    assert result.frame().equals(simulate(["task1"], policies, **spec).frame())


def test_address_without_a_scheduler_is_an_error():
    with raises_code("cluster-unreachable", "tcp://127.0.0.1:9"):
        simulate(["task1"], ["ts"], horizon=3, trials=1, cluster="tcp://127.0.0.1:9")


def test_lost_scheduler_is_one_error(tmp_path, caplog):
    file = tmp_path / "scheduler.json"
    options = ("--no-dashboard", "--scheduler-file", file)
    address = ("--host", "127.0.0.1", "--port", "0")
    scheduler = start_python("-m", "distributed.cli.dask_scheduler", *address, *options)
    worker = start_python(
        "-m", "distributed.cli.dask_worker", *options, "--nthreads", "1", "--no-nanny"
    )
    try:
        assert wait_until(file.exists)
        address = json.loads(file.read_text())["address"]

        def kill_scheduler(finished, _total):
            if finished == 1:
                scheduler.kill()

        with raises_code("cluster-unreachable", address):
            simulate(["task3"], ["ids"], 1000, 600, cluster=address, progress=kill_scheduler)
    finally:
        kill_session(scheduler)
        kill_session(worker)
    assert not caplog.records
