"""N workers as one executor: start, submit, supervise, stop."""
