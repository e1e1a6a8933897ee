"""What a load is sent to."""

from typing import Protocol

__all__ = ["Target"]


class Target(Protocol):
    """Anything that answers requests: a server, or a dispatcher in the same process."""

    async def send(self, number: int) -> None:
        """Send a request and wait for its whole answer.

        May be called again before earlier requests are answered; a cancelled one is abandoned.

        Args:
            number: Of the request in its run, from 0; the same number asks the same.

        Raises:
            RequestError: It was not answered as it should be.
        """
