"""A real Dask scheduler with worker processes, one of which is killed during the run."""

import os
import signal

import pytest

from dowise import DowiseError, simulate

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


@pytest.mark.filterwarnings("ignore")
def test_an_address_without_a_scheduler_is_explained():
    pytest.importorskip("distributed")
    with pytest.raises(DowiseError, match="no Dask scheduler answers at tcp://127.0.0.1:9"):
        simulate(["task1"], ["ts"], horizon=3, trials=1, cluster="tcp://127.0.0.1:9")
