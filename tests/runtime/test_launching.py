"""What a launched program finds in its environment."""

from pinstripe.placement import Wish, place
from pinstripe.runtime import launch_requests
from pinstripe.testing.machines import hybrid_1370p


def test_each_finds_its_place() -> None:
    """Two instances of two cores with both hardware threads: 4 threads each, on CPUs 0-3 and 4-7, by hand."""
    machine = hybrid_1370p()
    placement = place(machine, Wish(instances=2, cores=2, smt="all"))
    inherited = {"GOMP_CPU_AFFINITY": "0", "PINSTRIPE_INSTANCE": "9"}
    requests = launch_requests(["run", "--x"], placement, machine, inherited, memory_policy="local")
    assert [(request.argv, request.cpus, request.memory_policy) for request in requests] == [
        (("run", "--x"), (0, 1, 2, 3), "local"),
        (("run", "--x"), (4, 5, 6, 7), "local"),
    ]
    environment = requests[1].environment
    assert {name: value for name, value in environment.items() if name.startswith("PINSTRIPE_")} == {
        "PINSTRIPE_INSTANCE": "1",
        "PINSTRIPE_INSTANCES": "2",
        "PINSTRIPE_CORES": "2",
        "PINSTRIPE_CPUS": "4-7",
    }
    assert environment["OMP_NUM_THREADS"] == "4"
    assert environment["GOMP_CPU_AFFINITY"] is None
