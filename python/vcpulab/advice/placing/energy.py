"""The power of hosts: a straight line from an idle host to a busy one.

Fan, Weber and Barroso 2007, "Power provisioning for a warehouse-sized computer" (ISCA, pp. 13-23), find that power
follows the CPU's utilization along such a line to within a few percent for groups of machines. The model leaves out
fans, disks, cooling, and the power of a host that is switched off.
"""

from typing import NamedTuple

HOURS_PER_YEAR = 8766
"""365.25 days."""


class Power(NamedTuple):
    """The power of one host, W."""

    idle: float = 150.0
    """Assumed: half of a busy one's, which Barroso and Hölzle 2007 ("The case for energy-proportional computing", IEEE
    Computer 40, 12) call usual for servers."""
    busy: float = 300.0
    """Assumed: a server with one or two sockets."""

    def draws(self, used: float) -> float:
        """The power of a host at a utilization of its pCPUs (0 to 1), W.

        Examples:
            >>> Power().draws(0.5)
            225.0
        """
        return self.idle + (self.busy - self.idle) * used
