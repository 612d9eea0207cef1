"""A real Dask cluster of two worker processes gives the same numbers."""

import pytest

import evenhand as eh

WORLD = eh.SyntheticWorld(n_arms=4, n_features=2, n_sensitive=2)


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_same_numbers_by_client_and_by_address(cluster):
    from distributed import Client

    settings = {"horizon": 200, "replications": 6, "seed": 8}
    policies = [eh.TopInterval, eh.GroupFairTopInterval]
    here = eh.simulate(policies, WORLD, workers=1, **settings).runs
    with Client(cluster) as client:
        assert len(client.scheduler_info()["workers"]) == 2
        there = eh.simulate(policies, WORLD, client=client, **settings).runs
    by_address = eh.simulate(policies, WORLD, client=cluster.scheduler_address, **settings).runs
    assert here.equals(there)
    assert here.equals(by_address)
