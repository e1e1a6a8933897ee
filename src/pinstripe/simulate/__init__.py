"""An executor whose time is computed: machines that we don't have."""

__all__: list[str] = []
