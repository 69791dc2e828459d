"""How far from what is possible is a host? Throughput against the number of users: simulated, and as theory bounds it.

Run it with `marimo run examples/notebooks/bounds.py` (extra `notebooks`).
"""

import marimo

app = marimo.App(width="medium", app_title="Bounds")


@app.cell
def _():
    import marimo as mo
    import polars as pl

    import vcpulab

    return mo, pl, vcpulab


@app.cell
def _(mo):
    mo.md("""
    # How far from what is possible?

    Users ask a web server again and again, with some time to think. Mean-value analysis says what the host could serve
    if nothing cost anything but the work itself; the simulation adds switches, interrupts, cold caches and the
    scheduler's choices. The gap is what a scheduler, or a setting, may win.
    """)


@app.cell
def _(mo):
    scheduler = mo.ui.dropdown(["credit", "credit2", "sedf", "rtds", "round-robin"], value="credit", label="scheduler")
    pcpus = mo.ui.slider(1, 4, value=1, label="pCPUs", show_value=True)
    think = mo.ui.slider(5, 100, step=5, value=20, label="think time, ms", show_value=True)
    mo.vstack([scheduler, pcpus, think])
    return pcpus, scheduler, think


@app.cell
def _(pcpus, scheduler, think, vcpulab):
    users = [1, 2, 5, 10, 20, 40, 60, 80, 120]
    hosts = [
        vcpulab.Scenario.from_dict(
            {
                "name": f"{number} users",
                "run": {"duration": "2s", "warmup": "500ms", "replications": 3},
                "host": {"profile": "lp200r", "pcpus": pcpus.value, "scheduler": scheduler.value},
                "domain": {
                    "dom0": {"driver_domain": True},
                    "web": {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server"}]},
                },
                "client": {
                    "users": {
                        "kind": "closed-loop",
                        "server": "web",
                        "users": number,
                        "think": f"{think.value}ms",
                    }
                },
            }
        )
        for number in users
    ]
    return hosts, users


@app.cell
def _(hosts, mo, pl, users, vcpulab):
    import altair as alt

    rows = []
    for number, host, run in zip(users, hosts, vcpulab.run_many(hosts), strict=True):
        load = vcpulab.bounds(host).loads[0]
        simulated = run["web.throughput"]
        rows += [
            {"users": number, "what": "bound", "per_s": load.throughput_max},
            {"users": number, "what": "mean-value analysis", "per_s": load.throughput},
            {"users": number, "what": "simulated", "per_s": simulated.mean},
        ]
    curves = pl.DataFrame(rows)
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("users:Q"),
            y=alt.Y("per_s:Q", title="requests per second"),
            color=alt.Color("what:N", title=None),
            strokeDash=alt.StrokeDash("what:N", title=None),
        )
        .properties(width=600, height=320)
    )
    mo.vstack([chart, mo.md(f"What limits {users[-1]} users: **{vcpulab.bounds(hosts[-1]).loads[0].bottleneck}**.")])
    return (curves,)


if __name__ == "__main__":
    app.run()
