"""Words to calls, errors to exit codes."""
