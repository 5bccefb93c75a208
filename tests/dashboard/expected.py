"""The texts that the page must show for a state, computed without the page's code."""
import decimal
import math


def count(n):
    return f"{math.floor(n + 0.5):,}"


def share(x, decimals=1):
    return f"{100 * x:.{decimals}f}%"


def number(n, digits):
    size = math.floor(math.log10(abs(n)))
    unit = decimal.Decimal(10) ** -max(0, digits - 1 - size)
    return f"{decimal.Decimal(repr(n)).quantize(unit, decimal.ROUND_HALF_UP):,}"


def figures(state):
    totals, run = state["totals"], state["run"]
    texts = {
        "samples": count(totals["samples"]),
        "rate": count(totals["samples_per_second"]),
        "wait": share(totals["wait"] / (totals["wait"] + totals["compute"])),
        "gap": count(totals["max_clock_gap"]),
        "parked": count(totals["parked_pulls"]),
        "live": count(totals["live_workers"]),
    }
    if run["has_losses"] and state["train"]:
        texts["loss"] = number(state["train"][-1][2], 4)
    if run["has_accuracy"] and state["test"]:
        texts["accuracy"] = share(state["test"][-1][3], 2)
    return texts


def first_culprit(state):
    first = state["causes"][0]
    return share(first["seconds"] / (state["totals"]["wait"] + state["totals"]["compute"]))
