from __future__ import annotations

from imagenet_ops.domain.cluster import GangPlan, ProcessPlan, plan_gang

ARGV = ("python", "-m", "imagenet_ops.trainer", "store", "key")


def environment(role: str) -> dict[str, str]:
    return {
        "PYTHONUNBUFFERED": "1",
        "DMLC_ROLE": role,
        "DMLC_PS_ROOT_URI": "10.0.0.1",
        "DMLC_PS_ROOT_PORT": "9091",
        "DMLC_NUM_WORKER": "3",
        "DMLC_NUM_SERVER": "2",
    }


def test_the_plan_of_a_gang_on_two_hosts() -> None:
    plan = plan_gang(list(ARGV), ["gpu1", "gpu2"], 3, 2, ("10.0.0.1", 9091), {"PYTHONUNBUFFERED": "1"})
    assert plan == GangPlan(
        (
            ProcessPlan("scheduler", 0, "gpu1", environment("scheduler"), ARGV),
            ProcessPlan("server", 0, "gpu1", environment("server"), ARGV),
            ProcessPlan("server", 1, "gpu2", environment("server"), ARGV),
            ProcessPlan("worker", 0, "gpu1", environment("worker"), ARGV),
            ProcessPlan("worker", 1, "gpu2", environment("worker"), ARGV),
            ProcessPlan("worker", 2, "gpu1", environment("worker"), ARGV),
        )
    )
    assert [process.name for process in plan.processes] == [
        "scheduler_0",
        "server_0",
        "server_1",
        "worker_0",
        "worker_1",
        "worker_2",
    ]


def test_the_rendezvous_wins_over_the_given_environment() -> None:
    plan = plan_gang(["python"], ["localhost"], 1, 1, ("127.0.0.1", 1), {"DMLC_ROLE": "worker", "DMLC_NUM_WORKER": "9"})
    assert [
        (process.environment["DMLC_ROLE"], process.environment["DMLC_NUM_WORKER"]) for process in plan.processes
    ] == [
        ("scheduler", "1"),
        ("server", "1"),
        ("worker", "1"),
    ]


def test_no_two_processes_share_an_environment() -> None:
    plan = plan_gang(["python"], ["localhost"], 2, 2, ("127.0.0.1", 1), {})
    assert len({id(process.environment) for process in plan.processes}) == 5
