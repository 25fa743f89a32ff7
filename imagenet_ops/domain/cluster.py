"""The plan of a training gang: every process with its role, host, index and environment, as a value.

MXNet's parameter servers find each other through one scheduler; the variables are ps-lite's
(https://github.com/dmlc/ps-lite/blob/master/docs/env.md). `rendezvous` is the only framework-specific part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Role = Literal["scheduler", "server", "worker"]


@dataclass(frozen=True)
class ProcessPlan:
    """One process of the gang; `index` counts from 0 within its role."""

    role: Role
    index: int
    host: str
    environment: dict[str, str]
    argv: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.role}_{self.index}"


@dataclass(frozen=True)
class GangPlan:
    """All processes, in the order in which they start."""

    processes: tuple[ProcessPlan, ...]


def plan_gang(
    argv: Sequence[str],
    hosts: Sequence[str],
    num_workers: int,
    num_servers: int,
    scheduler_address: tuple[str, int],
    environment: dict[str, str],
) -> GangPlan:
    """One scheduler on the first host; servers, then workers, dealt to the hosts in turn.

    `environment` goes to every process. All run the same `argv`: ps-lite's role decides what it does.
    """
    roles: list[tuple[Role, int]] = [("scheduler", 0)]
    roles += [("server", index) for index in range(num_servers)]
    roles += [("worker", index) for index in range(num_workers)]
    return GangPlan(
        tuple(
            ProcessPlan(
                role=role,
                index=index,
                host=hosts[0] if role == "scheduler" else hosts[index % len(hosts)],
                environment={**environment, **rendezvous(role, num_workers, num_servers, scheduler_address)},
                argv=tuple(argv),
            )
            for role, index in roles
        )
    )


def rendezvous(role: Role, num_workers: int, num_servers: int, scheduler_address: tuple[str, int]) -> dict[str, str]:
    """How a process of `role` finds the others. The address is numeric: ps-lite can't bind to a name."""
    host, port = scheduler_address
    return {
        "DMLC_ROLE": role,
        "DMLC_PS_ROOT_URI": host,
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NUM_WORKER": str(num_workers),
        "DMLC_NUM_SERVER": str(num_servers),
    }
