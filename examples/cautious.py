"""A controller for `vcpulab manage`: quick to give, slow to take away."""

from vcpulab.advice.managing import Controller, Usage


class Cautious(Controller):
    def allocate(self, usage: Usage) -> float:
        wanted = usage.used / self.target
        if wanted > usage.allocated:
            return wanted
        return 0.9 * usage.allocated + 0.1 * wanted
