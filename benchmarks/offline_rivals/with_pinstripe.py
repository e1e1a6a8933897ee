"""Encode with pinstripe's Python API: -m offline_rivals.with_pinstripe MODEL CORPUS PRECISION."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pinstripe
from offline_rivals.turns import Encode, take_turns
from pinstripe.engines import Precision


def main(model: str, corpus: str, precision: Precision) -> None:
    """Take turns; all else as it is where nobody said how."""
    with ExitStack() as stack:

        def load() -> tuple[Encode, dict[str, Any]]:
            opened = stack.enter_context(pinstripe.open(model, precision=precision))
            how = opened.configuration
            facts = {"engine": how.engine, "instances": how.instances, "cores": how.cores, "precision": how.precision}
            return opened.encode, facts

        take_turns(load, Path(corpus), ["numpy", "tokenizers"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], cast("Precision", sys.argv[3]))
