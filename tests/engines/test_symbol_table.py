"""Functions that a library does not export are found where they are, or not at all."""

import ctypes
import ctypes.util
from pathlib import Path

import pytest

from pinstripe.engines.symbol_table import inner_function


def test_an_exported_function_lies_where_the_loader_says() -> None:
    """Of a function that is in both tables of torch's library, the loader knows the address, too."""
    torch = pytest.importorskip("torch")
    library, name = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so", "aoti_torch_device_type_cpu"
    address = inner_function(library, name)
    if address is None:
        pytest.skip("this build of torch is stripped")
    assert address == ctypes.cast(getattr(ctypes.CDLL(str(library)), name), ctypes.c_void_p).value


def test_what_cannot_be_found(tmp_path: Path) -> None:
    """No address is given of what is not there: a function, a symbol table, a library in this process, a file."""
    paths = {Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line}
    for path in paths:  # none where the C library has another name
        assert inner_function(path, "no_such_function") is None
    unloaded = tmp_path / "libno.so"
    unloaded.write_bytes(b"\x7fELF\x02\x01")
    assert inner_function(unloaded, "printf") is None
    assert inner_function(tmp_path / "absent.so", "printf") is None
