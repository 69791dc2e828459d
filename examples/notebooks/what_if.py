"""What weights and caps do to a web server beside a batch domain: move the sliders.

Run it with `marimo run examples/notebooks/what_if.py` (extra `notebooks`).
"""

import marimo

app = marimo.App(width="medium", app_title="What if")


@app.cell
def _():
    import marimo as mo

    import vcpulab
    from vcpulab.advice.compare import frame_of_changes
    from vcpulab.show import charts, plots

    return charts, frame_of_changes, mo, plots, vcpulab


@app.cell
def _(mo):
    mo.md("""
    # What if?

    A web server and a batch domain share one pCPU with the domain that does the server's I/O. Set weights, a cap,
    another scheduler: both settings are simulated with the same arrivals, and differences have 95 % confidence
    intervals.
    """)


@app.cell
def _(mo, vcpulab):
    now = vcpulab.Scenario.starter().change({"run.duration": "2s", "run.replications": 10})
    weight = mo.ui.slider(64, 2048, step=64, value=256, label="weight of web", show_value=True)
    dom0 = mo.ui.slider(64, 2048, step=64, value=512, label="weight of dom0", show_value=True)
    cap = mo.ui.slider(0, 100, step=5, value=30, label="cap of batch, % (0: none)", show_value=True)
    scheduler = mo.ui.dropdown(["credit", "credit2"], value="credit", label="scheduler")
    mo.vstack([scheduler, weight, dom0, cap])
    return cap, dom0, now, scheduler, weight


@app.cell
def _(cap, dom0, now, scheduler, vcpulab, weight):
    asked = {
        "host.scheduler": scheduler.value,
        "domain.web.weight": weight.value,
        "domain.dom0.weight": dom0.value,
        "domain.batch.cap": cap.value,
    }
    found = vcpulab.whatif(now, asked)
    return (found,)


@app.cell
def _(charts, found, frame_of_changes, mo, plots):
    judged = [one for one in found if one.address.better and one.percent is not None]
    mo.vstack(
        [
            mo.md("\n".join(f"* {line}" for line in str(found).splitlines())),
            charts.differences(frame_of_changes(judged)),
            plots.apps({"now": found.before, "changed": found.after}),
        ]
    )


@app.cell
def _(found, mo):
    typed = "\n".join(step.text for step in found.commands if step.how == "run")
    mo.md(f"To set it on a real host:\n\n```sh\n{typed or '# nothing'}\n```")


if __name__ == "__main__":
    app.run()
