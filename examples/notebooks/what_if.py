"""What weights and caps do to a web server beside a batch domain: move the sliders.

Run it with `marimo run examples/notebooks/what_if.py` (extra `notebooks`).
"""

import marimo

app = marimo.App(width="medium", app_title="What if")


@app.cell
def _():
    import marimo as mo

    import vcpulab
    from vcpulab.advice import comparison_report
    from vcpulab.advice.compare import compare
    from vcpulab.scenario.settings import change
    from vcpulab.show import charts as plots

    return change, compare, comparison_report, mo, plots, vcpulab


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
    now = vcpulab.Scenario.starter().change({"run.duration": "2s", "run.replications": 10, "action": None})
    weight = mo.ui.slider(64, 2048, step=64, value=256, label="weight of web", show_value=True)
    dom0 = mo.ui.slider(64, 2048, step=64, value=512, label="weight of dom0", show_value=True)
    cap = mo.ui.slider(0, 100, step=5, value=50, label="cap of batch, % (0: none)", show_value=True)
    scheduler = mo.ui.dropdown(["credit", "credit2"], value="credit", label="scheduler")
    mo.vstack([scheduler, weight, dom0, cap])
    return cap, dom0, now, scheduler, weight


@app.cell
def _(cap, change, dom0, now, scheduler, weight):
    asked = {
        "host.scheduler": scheduler.value,
        "domain.web.weight": weight.value,
        "domain.dom0.weight": dom0.value,
        "domain.batch.cap": cap.value,
    }
    then = change(now, asked).scenario
    return (then,)


@app.cell
def _(compare, comparison_report, mo, now, plots, then, vcpulab):
    runs = vcpulab.run_many([now, then])
    found = compare(*runs)
    judged = [one for one in found if one.metric.better and one.percent is not None]
    mo.vstack(
        [
            mo.md("\n".join(f"* {line}" for line in comparison_report.in_words(found))),
            plots.differences(judged),
            plots.apps({"now": runs[0], "changed": runs[1]}),
        ]
    )


@app.cell
def _(mo, now, then):
    from vcpulab.hypervisors.xl import new_steps

    typed = "\n".join(step.text for step in new_steps(now, then) if step.how == "run")
    mo.md(f"To set it on a real host:\n\n```sh\n{typed or '# nothing'}\n```")


if __name__ == "__main__":
    app.run()
