"""The registry of metrics as data, for others than Python: `schema/metrics.json`."""

import json
from pathlib import Path
from typing import Any

from vcpulab.results.metrics import METRICS, RUN_KINDS, Metric, ThingKind

FILE = Path(__file__).parents[1] / "schema/metrics.json"
_TABLES: dict[ThingKind, str] = {"domain": "domains", "app": "apps", "pcpu": "pcpus", "io": "io"}
_OPERATORS = {
    "Plus": "+", "Minus": "-", "Multiply": "*", "TrueDivide": "/", "Gt": ">", "Eq": "=", "NotEq": "!=", "Or": "or"
}  # fmt: skip


def page() -> str:
    """The metrics of runs, each with its value: an operator and what it is applied to, in lists; texts are columns."""

    def described(of: ThingKind, metric: Metric) -> dict[str, Any]:
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
            "accumulates": metric.accumulates,
            "table": table,
            "value": value,
        }

    def lines(of: ThingKind) -> str:
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
