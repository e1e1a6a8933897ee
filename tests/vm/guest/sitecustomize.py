"""Python runs this at every start in the guest: each process says on demand where it is, see `init.sh`."""

import faulthandler
import signal

faulthandler.register(signal.SIGUSR1)
