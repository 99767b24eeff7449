"""A sweep on a Dask cluster of two worker processes: the same table, whatever happens to the workers."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_info

from markov_theory.sweep import cluster
from markov_theory.sweep.__main__ import main
from markov_theory.sweep.bundling import Bundling
from markov_theory.sweep.cluster import Cluster, Sweep, expected_of, run_bundle, unfit
from markov_theory.sweep.engine import run_sweep
from markov_theory.sweep.source import given_rows
from markov_theory.sweep.store import Store
from markov_theory.sweep.trials import Trials

SMALL = ["--s", "1..3", "--tokens", "12", "--outcomes", "16", "--ratio", "20", "--epsilon", "1e-3"]
QUICK = ["--truths", "1", "--trials", "128", "--delta", "0.2"]
SLOW = """
import time
from markov_theory.estimators.baselines import SmoothedEmpirical

class Slow(SmoothedEmpirical):
    name = "slow"

    def _fit(self, transitions, counts):
        time.sleep(0.5)
        return super()._fit(transitions, counts)
"""


@pytest.fixture(scope="module")
def local_cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started:
        yield started


@pytest.fixture
def address(local_cluster):
    with Client(local_cluster) as client:
        client.wait_for_workers(2, timeout=120)
    return local_cluster.scheduler_address


@pytest.fixture
def connected(address):
    with closing(Cluster(address)) as connected:
        yield connected


def stored(folder):
    """All batches but for the seconds that they took."""
    with closing(sqlite3.connect(folder / "trials.sqlite")) as connection:
        columns = "point, truth, estimator, n_samples, batch, kl, gap, inaccurate"
        return connection.execute(f"SELECT {columns} FROM batches ORDER BY 1, 2, 3, 4, 5").fetchall()


def run(folder, specification, executor, **options):
    with closing(Store(folder, specification)) as store:
        return run_sweep(specification, store, executor, **options)


def worker_of(threads, name, specification, **changes):
    """Threads of this process, as the executor of a cluster's worker."""
    sweep = Sweep(name, specification, None, {**expected_of(specification), **changes})
    return Bundling(lambda bundle: threads.submit(run_bundle, sweep, bundle), lambda: 1)


def process_ids(client):
    return set(client.run(os.getpid).values())


def tasks_left(client):
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def wait_until(true, seconds=60):
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.05)
    return true()


def test_the_command_writes_the_same_tables_byte_for_byte(inline, address, tmp_path, capsys):
    few = [*SMALL, *QUICK, "--estimators", "oracle,kl-pursuit"]
    assert main([*few, "--jobs", "1", "--out", str(tmp_path / "here")]) == 0
    assert main([*few, "--engine", f"dask:{address}", "--out", str(tmp_path / "there")]) == 0
    for table in ("cells.csv", "summary.csv"):
        assert (tmp_path / "there" / table).read_bytes() == (tmp_path / "here" / table).read_bytes()
    assert stored(tmp_path / "there") == stored(tmp_path / "here")
    assert "workers at work on average" in capsys.readouterr().out


def test_rows_that_are_given_travel_to_the_workers_which_have_one_thread(connected, small, tmp_path):
    (tmp_path / "rows.csv").write_text("0.7,0.2,0.1\n0.1,0.8,0.1\n0.2,0.2,0.6\n")
    path = str(tmp_path / "rows.csv")
    given = given_rows(path, {}, 0, 0, tmp_path)
    rows = {"dictionary": path, "s": 2, "tokens": None, "outcomes": None, "ratio": None, "estimators": "oracle"}
    specification = small(**rows, epsilon=1e-2).specification
    with connected.ready(specification, given) as executor:
        outcome = run(tmp_path / "there", specification, executor)
        pools = executor.submit(threadpool_info).result()
    assert outcome.errors == {}
    assert set(outcome.located) == set(specification.cells())
    assert pools
    assert {pool["num_threads"] for pool in pools} == {1}


def test_a_worker_killed_amid_its_trials_changes_nothing(connected, address, whole, specification, tmp_path):
    folder, here, _ = whole
    killed = tmp_path / "killed"

    def deadly(function, *arguments):
        if not killed.exists():
            killed.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)

    class Deadly(Executor):
        """Has the worker that is given the tenth call killed while it has it."""

        def __init__(self, executor):
            self.executor, self.n_calls = executor, 0

        def submit(self, function, /, *arguments):
            self.n_calls += 1
            return self.executor.submit(*([deadly] if self.n_calls == 10 else []), function, *arguments)

    with connected.ready(specification) as executor:
        outcome = run(tmp_path, specification, Deadly(executor))
    assert outcome == here
    assert stored(tmp_path) == stored(folder)
    with Client(address) as client:
        assert int(killed.read_text()) not in process_ids(client)
        client.wait_for_workers(2, timeout=120)  # the cluster is as it was, for the next test


def test_an_interrupt_cancels_what_is_left_and_leaves_the_cluster_alone(address, tmp_path, monkeypatch, capsys):
    (tmp_path / "slow_on_cluster.py").write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    flags = [*SMALL, *QUICK, "--estimators", "oracle,slow_on_cluster:Slow", "--engine", f"dask:{address}"]
    assert main([*flags, "--out", "out"]) == 2
    error = capsys.readouterr().err
    assert "estimators: 'slow_on_cluster:Slow' cannot be imported" in error
    assert "install its package there, or start the workers with its folder on PYTHONPATH\n" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()

    with Client(address) as client:
        client.run(lambda: sys.path.insert(0, str(tmp_path)))
        before = process_ids(client)
        command = [sys.executable, "-m", "markov_theory.sweep", *flags, "--out", "out"]
        started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: started.poll() is not None or tasks_left(client) > 2)
        assert started.poll() is None, started.stderr.read()
        started.send_signal(signal.SIGINT)
        _, error = started.communicate(timeout=120)
        assert started.returncode == 130, error
        assert error == "stopped; the same command goes on from here\n"
        assert wait_until(lambda: tasks_left(client) == 0)
        assert process_ids(client) == before


def test_wrong_addresses_end_with_one_clear_line(local_cluster, tmp_path, monkeypatch, capsys):
    worker = local_cluster.workers[0].worker_address
    monkeypatch.setattr(cluster, "TIMEOUT", 2)
    with socket.socket() as silent:  # something that listens and is no scheduler
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        mute = f"127.0.0.1:{silent.getsockname()[1]}"
        answers = {
            f"dask:{mute}": f"no Dask scheduler answers at tcp://{mute} within 2 s",
            "dask:127.0.0.1:1": "no Dask scheduler answers at tcp://127.0.0.1:1 within 2 s",
            f"dask:{worker}": f"no Dask scheduler answers at {worker} within 2 s (a Worker does)",
            "dask:nowhere": "--engine wants dask:tcp://HOST:PORT, got dask:tcp://nowhere (missing port number",
            "dask:odd://nowhere:1": "unknown address scheme 'odd'",
            "dask:": "--engine must be local or dask:ADDRESS, got 'dask:'",
            "ray": "--engine must be local or dask:ADDRESS, got 'ray'",
        }
        for engine, words in answers.items():
            assert main([*SMALL, "--engine", engine, "--out", str(tmp_path / "out")]) == 2
            error = capsys.readouterr().err
            assert words in error
            assert error.count("\n") == 1
    assert main([*SMALL, "--engine", "dask:127.0.0.1:1", "--jobs", "2"]) == 2
    assert "--jobs does not go with --engine dask:127.0.0.1:1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_dask_it_is_said_how_to_install_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main([*SMALL, "--engine", "dask:tcp://127.0.0.1:8786", "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.endswith("pip install markov-theory[cluster]\n")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def tiny(small, sweep, tmp_path_factory):
    """A specification, and its outcome in this process."""
    specification = small(s="2", estimators="oracle,uniform", truths=1, epsilon=1e-2).specification
    return specification, sweep(tmp_path_factory.mktemp("tiny"), specification)[0]


def test_a_worker_with_several_threads_runs_one_task_at_a_time(tiny, tmp_path, monkeypatch):
    specification, expected = tiny
    running, most = [], []
    usual = Trials.run

    def counted(self, *key):
        running.append(key)
        most.append(len(running))
        time.sleep(0.001)
        batch = usual(self, *key)
        running.remove(key)
        return batch

    monkeypatch.setattr(Trials, "run", counted)
    with ThreadPoolExecutor(4) as threads, worker_of(threads, "threads", specification) as executor:
        outcome = run(tmp_path, specification, executor)
    assert outcome == expected
    assert max(most) == 1


def test_two_sweeps_can_share_a_worker(tiny, tmp_path):
    specification, expected = tiny
    other = replace(specification, seed=1)
    with (
        ThreadPoolExecutor(2) as worker,
        ThreadPoolExecutor(2) as commands,
        worker_of(worker, "a", specification) as first,
        worker_of(worker, "b", other) as second,
    ):
        asked = [
            commands.submit(run, tmp_path / "a", specification, first),
            commands.submit(run, tmp_path / "b", other, second),
        ]
        mine, others = (task.result() for task in asked)
    assert mine == expected
    assert others != expected


def test_workers_with_other_code_are_refused(specification, tmp_path):
    expected = expected_of(specification)
    assert unfit(specification, expected) == ""
    odd = {"version of numpy": "0.1"}
    reason = unfit(specification, expected | odd)
    assert reason.startswith("its version of numpy is ")
    assert reason.endswith(", that of the machine of this command is 0.1")
    with ThreadPoolExecutor(1) as threads, worker_of(threads, "odd", specification, **odd) as executor:
        outcome = run(tmp_path, specification, executor)
    assert outcome.located == {}
    assert {f"RuntimeError: a worker that joined cannot run this sweep: {reason}"} == set(outcome.errors.values())


def test_the_help_explains_the_engine(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "--engine ENGINE " in capsys.readouterr().out
