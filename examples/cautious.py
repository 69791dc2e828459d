"""A controller for `vcpulab manage`: quick to give, slow to take away."""

from vcpulab.advice.managing import Controller, Seen


class Cautious(Controller):
    def allocate(self, seen: Seen) -> float:
        wanted = seen.used / self.target
        if wanted > seen.allocated:
            return wanted
        return 0.9 * seen.allocated + 0.1 * wanted
