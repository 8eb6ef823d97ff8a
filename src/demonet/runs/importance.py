"""What moved the first answers of a run: a part of its metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from demonet.data.splits import Split
from demonet.estimators.core import Fitted
from demonet.estimators.explain import fitted_reasons
from demonet.estimators.importance import affordable
from demonet.estimators.reasons import Go, in_words, unlimited
from demonet.options import Effort
from demonet.runs.inputs import Inputs
from demonet.runs.run import first_items, parts_of

Array = NDArray[Any]
EXPLAINED = 10  # items of a run that have reasons


def reason_facts(
    fitted: Fitted,
    inputs: Inputs,
    split: Split,
    outputs: Array,
    column: int | None,
    effort: Effort,
    go: Go = unlimited,
) -> dict[str, Any]:
    """In words, what moved the answers for the items at the top of the page's list, by the index of the item.

    Args:
        fitted: The model that is saved.
        inputs: The problem.
        split: The parts; items without a label come first, then tested ones.
        outputs: ``[items, outputs]`` of the model.
        column: The output to rank by; None for the most confident answers, or the first ones by each label or target.
        effort: Bounds the number of predictions.
        go: Asked before each of them.
    """
    parts, several = parts_of(split, len(outputs)), column is None and inputs.task != "classify"
    explained: dict[int, int] = {}
    if several:
        columns = range(min(EXPLAINED, outputs.shape[1]))
        for place in columns:
            rows = first_items(outputs[:, [place]], parts, EXPLAINED // len(columns))
            explained = dict.fromkeys(rows.tolist(), place) | explained
    else:
        score = outputs.max(1) if column is None else outputs[:, column]
        rows = first_items(score[:, None], parts, EXPLAINED)
        tops = outputs[rows].argmax(1) if column is None else np.full(len(rows), column)
        explained = dict(zip(rows.tolist(), tops.tolist(), strict=True))
    given = fitted, inputs.data, list(explained), list(explained.values()), inputs.columns
    found = fitted_reasons(*given, budget=affordable(inputs.data, effort), go=go)
    names = (str(inputs.names[place]) if several else "" for place in explained.values())
    told = (in_words(why, inputs.task, of) for why, of in zip(found, names, strict=True))
    return {str(row): words.split("; ") for row, words in zip(explained, told, strict=True) if words}
