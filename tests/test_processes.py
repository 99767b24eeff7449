"""Workers have one thread of linear algebra, and end with their parent however that ends."""

import os
import signal
import subprocess
import sys
import time

import pytest

from markov_theory._processes import THREAD_VARIABLES, apply_all, interrupts_held, worker_processes

WAITING = """\
import sys, time
from markov_theory._processes import interrupts_held, worker_processes
if __name__ == "__main__":
    with worker_processes(2) as executor:
        with interrupts_held():
            tasks = [executor.submit(time.sleep, 0.2) for _ in range(2000)]
        tasks[1].result()
        print("working", flush=True)
        tasks[-1].result()
"""


def test_workers_have_one_thread_and_the_parent_keeps_its_own():
    before = dict(os.environ)
    with worker_processes(1) as executor, interrupts_held():
        told = [executor.submit(os.getenv, name) for name in THREAD_VARIABLES]
        assert [task.result() for task in told] == ["1"] * len(THREAD_VARIABLES)
    assert dict(os.environ) == before


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("items", [[], [-3], [3, -1, 2]])
def test_results_are_in_the_order_of_the_items(items, n_jobs):
    told = []
    assert apply_all(abs, items, n_jobs, told.append) == [abs(item) for item in items]
    assert told == list(range(1, len(items) + 1))


@pytest.mark.parametrize("signals", [[signal.SIGKILL], [signal.SIGINT], [signal.SIGINT] * 3], ids=["kill", "1", "3"])
def test_no_worker_is_left_behind(tmp_path, signals):
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    started = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert started.stdout.readline() == "working\n"
    for one in signals:
        os.kill(started.pid, one) if one == signal.SIGKILL else os.killpg(started.pid, one)
        time.sleep(0.02)
    started.wait(timeout=60)
    assert started.returncode != 0
    for _ in range(200):
        try:
            os.killpg(started.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("workers are still there 20 seconds after their parent")
