"""In the guest: prints the results of one case, a module of this folder with a function `results`, as JSON."""

import importlib
import json
import sys
from pathlib import Path


def main() -> None:
    """Run the case that the only argument names."""
    Path("/proc/sys/kernel/numa_balancing").write_text("0")  # or the kernel may move pages between touch and look
    case = importlib.import_module(f".{sys.argv[1]}", __package__)
    sys.stdout.write("\n" + json.dumps(case.results()) + "\n")


if __name__ == "__main__":
    main()
