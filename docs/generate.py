"""Writes reference pages, and the metrics for others than Python; `--check` only says if one is stale."""

import json
import sys
from pathlib import Path
from typing import Any

from vcpulab.advice.lint.catalogue import RULES
from vcpulab.cli.main import app
from vcpulab.results.metrics import METRICS, RUN_KINDS, Metric, Of

REFERENCE = Path(__file__).parent / "reference"
METRICS_FILE = Path(__file__).parent.parent / "schema" / "metrics.json"
_TABLES: dict[Of, str] = {"domain": "domains", "app": "apps", "pcpu": "pcpus", "io": "io"}
_OPERATORS = {
    "Plus": "+", "Minus": "-", "Multiply": "*", "TrueDivide": "/", "Gt": ">", "Eq": "=", "NotEq": "!=", "Or": "or"
}  # fmt: skip


def pages() -> dict[Path, str]:
    """The pages as they should be."""
    text: str = app().generate_docs(output_format="markdown", heading_level=1)
    lines = [line.rstrip() for line in text.strip().splitlines()]
    found = {REFERENCE / "command-line.md": "\n".join(lines) + "\n"}
    found[METRICS_FILE] = metrics()
    found |= {REFERENCE / "lint" / f"{rule.name}.md": rule.page() for rule in RULES.values()}
    return found | {REFERENCE / "lint" / "README.md": rules()}


def rules() -> str:
    """The list of the rules."""
    rows = [f"| [{rule.name}]({rule.name}.md) | {rule.finds} |" for rule in RULES.values()]
    lead = "What `vcpulab lint` looks for. `vcpulab lint --explain RULE` prints a rule's page."
    return "\n".join(["# Rules of lint", "", lead, "", "| rule | what it finds |", "|---|---|", *rows]) + "\n"


def metrics() -> str:
    """The metrics of runs, each with its value: an operator and what it is applied to, in lists; texts are columns."""

    def described(of: Of, metric: Metric) -> dict[str, Any]:
        value = _value(json.loads(metric.expression.meta.serialize(format="json")))
        columns = metric.expression.meta.root_names()
        table = _TABLES.get(of) or ("pcpus" if set(columns) & PCPU_COLUMNS else "domains")
        return {
            "name": metric.name,
            "unit": metric.unit.text,
            "doc": metric.doc,
            "better": metric.better,
            "bounds": [None if abs(bound) == float("inf") else bound for bound in metric.bounds],
            "whole": metric.unit.whole,
            "undefined_is": metric.undefined_is,
            "undefined_is_worst": metric.undefined_is_worst,
            "table": table,
            "value": value,
        }

    def lines(of: Of) -> str:
        return ",\n".join(json.dumps(described(of, metric), ensure_ascii=False) for metric in METRICS[of])

    return "{\n" + ",\n".join(f'"{of}": [\n{lines(of)}\n]' for of in RUN_KINDS) + "\n}\n"


PCPU_COLUMNS = {name for metric in METRICS["pcpu"] for name in metric.expression.meta.root_names()} - {"elapsed_ns"}


def _value(node: Any) -> Any:  # noqa: PLR0911
    """An expression of polars, of which those of metrics need little."""
    match node:
        case {"Column": name}:
            return name
        case {"Literal": {"Dyn": {"Int": number} | {"Float": number}}}:
            return number
        case {"Literal": {"Scalar": {"Null": _}}}:
            return None
        case {"Cast": {"expr": inner}}:
            return _value(inner)
        case {"BinaryExpr": {"left": left, "op": op, "right": right}}:
            return [_OPERATORS[op], _value(left), _value(right)]
        case {"Ternary": {"predicate": predicate, "truthy": yes, "falsy": no}}:
            return ["if", _value(predicate), _value(yes), _value(no)]
        case {"Function": {"input": [base, exponent], "function": {"Pow": _}}}:
            return ["^", _value(base), _value(exponent)]
        case {"Agg": {"Mean": inner}}:
            return ["mean", _value(inner)]
        case {"Agg": {"Sum": inner}}:
            return ["sum", _value(inner)]
        case {"Agg": {"Count": {"input": inner}}}:
            return ["count", _value(inner)]
    raise TypeError(f"no metric was computed like this before: {node}")


if __name__ == "__main__":
    wanted = pages()
    there = {path for path in (REFERENCE / "lint").glob("*.md") if path not in wanted}
    if sys.argv[1:] != ["--check"]:
        (REFERENCE / "lint").mkdir(exist_ok=True)
        for path, text in wanted.items():
            path.write_text(text, encoding="utf-8")
        for path in there:
            path.unlink()
    elif stale := [str(path) for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]:
        sys.exit(f"{', '.join(stale)}: stale\n\nhint: make docs")
    elif there:
        sys.exit(f"{', '.join(map(str, sorted(there)))}: no such rule\n\nhint: make docs")
