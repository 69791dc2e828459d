"""The messages between vCPUs of a recording, estimated from wake-ups: who sent what, and what each kind costs.

`attribution` alternates two steps: which messages each turn received; and what each kind of messages costs (`costs`)
and leads to (`fractions`). `turns` holds what both steps read and write. `ticks` and `partners` go before: wake-ups by
a kernel's tick, and links that few wake-ups show. `exchange` makes tasks of the result, with `tasks`, `wake_costs` and
`softirq`. `docs/concepts/twins.md` explains the method.
"""
