"""The commands `study`, `demo` and `validate`, which `vcpulab` takes from here by entry points."""
