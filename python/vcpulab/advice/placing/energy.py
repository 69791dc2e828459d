"""What hosts draw: a straight line from an idle host to a busy one.

Fan, Weber and Barroso 2007, "Power provisioning for a warehouse-sized computer" (ISCA, pp. 13-23), find that power
follows the CPU's utilisation along such a line to within a few percent for groups of machines. Left out: fans, disks,
cooling, and what a host draws that is switched off.
"""

from typing import NamedTuple

HOURS_PER_YEAR = 8766
"""365.25 days."""


class Power(NamedTuple):
    """What one host draws, W."""

    idle: float = 150.0
    """Assumed: half of a busy one's, which Barroso and Hölzle 2007 ("The case for energy-proportional computing", IEEE
    Computer 40, 12) call usual for servers."""
    busy: float = 300.0
    """Assumed: a server with one or two sockets."""

    def draws(self, used: float) -> float:
        """What a host draws whose pCPUs are used so much (0 to 1), W.

        Examples:
            >>> Power().draws(0.5)
            225.0
        """
        return self.idle + (self.busy - self.idle) * used
