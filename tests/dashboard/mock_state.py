"""The whole state of a MockRun, and the change of a state since the last one."""
import json

from mock_run import INFRASTRUCTURE, plain

PREDICTED = [("as it ran", 1.0, 0.287, 0.0), ("ssp(8)", 1.06, 0.243, 0.0021),
             ("ssp(16)", 1.11, 0.202, 0.0064), ("asp", 1.31, 0.061, 0.0187),
             ("bsp", 0.88, 0.371, -0.0012), ("without the slowness of worker 3", 1.75, 0.041, None)]
# Keys of live() that most changes leave as they are.
RARE = ("width", "pipeline", "sentences", "blocked")


def run(mock):
    return {"name": mock.name, "kind": "simulation" if mock.kind == "thousand" else "threads",
            "policy": f"ssp({mock.bound})", "workers": mock.workers, "shards": mock.shards,
            "stages": mock.stages, "pipelines": mock.members, "batch": mock.batch,
            "seed": mock.seed, "checkers": "all checkers on" if mock.kind == "thousand" else "",
            "has_accuracy": mock.kind == "straggler", "has_losses": True, "has_events": True,
            "rows": [{"name": name} for name in mock.row_names],
            "can_stop": True, "can_predict": mock.kind == "straggler",
            "keeps_operations": mock.kind == "pipeline"}


def causes(mock):
    total = mock.totals["compute"] + mock.totals["wait"]
    ordered = sorted(mock.cause_seconds.items(), key=lambda item: -item[1])[:12]
    kinds = set(INFRASTRUCTURE)
    return [{"cause": cause, "seconds": round(seconds, 6), "share": seconds / total,
             "kind": mock.causes[cause] if mock.causes[cause] in kinds else "worker"}
            for cause, seconds in ordered]


def blocked(mock):
    slowest = min((m for m in range(mock.members) if m not in mock.dead),
                  key=lambda m: mock.clock[m])
    waiting = sorted(mock.parked.items(), key=lambda item: item[1])[:50]
    return [{"actor": mock.causes[m * mock.stages], "on": mock.causes[slowest * mock.stages],
             "seconds": round(mock.now - since, 4)} for m, since in waiting]


def sentences(mock, first, share):
    name = mock.causes[first]
    how = {"stage before": "stages waited for activations",
           "stage after": "stages waited for gradients"}.get(name, "others waited for its pushes")
    return {
        "lost": f"{name[0].upper() + name[1:]} costs {share:.0%} of all time: {how}.",
        "staleness": f"Workers run at most {mock.totals['clock_gap']} iterations ahead of the "
                     f"slowest; the bound allows {mock.bound}, plus the iteration just pushed.",
        "blocked": f"{len(mock.parked)} pulls are parked now." if mock.parked else "",
        "leads": "", "alive": "", "loss": "",
        "pipeline": "", "throughput": ""}


def totals(mock):
    t = mock.totals
    return {"epoch": t["samples"] // 60_000 + 1, "iterations": t["iterations"],
            "samples": t["samples"],
            "samples_per_second": round(t["samples"] / mock.now, 3) if mock.now else 0,
            "push_bytes": t["push_bytes"], "pull_bytes": t["pull_bytes"],
            "plain_push_bytes": t["push_bytes"] * 4, "plain_pull_bytes": t["pull_bytes"],
            "stage_bytes": t["stage_bytes"], "plain_stage_bytes": t["stage_bytes"],
            "peak_memory_bytes": 200_000_000 + mock.workers * 1_400_000,
            "memory_bytes": 180_000_000 + mock.workers * 1_400_000,
            "parked_now": len(mock.parked), "parked_pulls": t["parked_pulls"],
            "clock_gap": mock.gap_now(), "max_clock_gap": t["clock_gap"],
            "partial_pushes": 0, "malformed": 0, "refused": 0, "lost_events": mock.lost_events,
            "live_workers": (mock.members - len(mock.dead)) * mock.stages,
            "compute": round(t["compute"], 6), "wait": round(t["wait"], 6)}


def pipeline(mock):
    if mock.stages == 1:
        return None
    slowness = [[round(mock.factor(p, s) * 0.98, 3) for s in range(mock.stages)]
                for p in range(mock.members)]
    return {"operations": mock.operations[-600:], "slowness": slowness,
            "pattern": "one cell is slow: worker 5, so a machine"}


def predictions(mock):
    rate = mock.totals["samples"] / mock.now
    rows = [{"name": name, "samples_per_second": rate * gain, "waiting": waiting,
             "change": gain - 1, "loss_change": loss} for name, gain, waiting, loss in PREDICTED]
    return {"rows": rows,
            "sentence": "Without worker 3's slowness, the run would be 75% faster."}


def live(mock):
    """The keys of the state that change all the time."""
    ordered = causes(mock)
    first = ordered[0] if ordered else {"cause": 0, "share": 0}
    return {"now": round(mock.now, 4), "totals": totals(mock), "causes": ordered,
            "sentences": sentences(mock, first["cause"], first["share"]),
            "blocked": blocked(mock), "leads_by_row": mock.leads_by_row,
            "leads_by_shard": mock.leads_by_shard, "width": mock.width,
            "pipeline": pipeline(mock)}


def state(mock):
    whole = {"run": run(mock), "ended": mock.ended, "bound": mock.bound,
             "cause_names": mock.causes, "train": mock.train, "test": mock.test,
             "marks": mock.marks, "predictions": None,
             "intervals": {"from": 0, "list": [plain(i) for i in mock.intervals]}}
    whole.update(live(mock))
    return whole


def change(mock, until):
    """Advances the run and returns the changed keys."""
    before = json.loads(json.dumps({key: live(mock)[key] for key in RARE}))
    length, curves, marks = len(mock.intervals), len(mock.train), len(mock.marks)
    mock.changed_from = length - 1
    mock.advance(until)
    changed = live(mock)
    for key in RARE:
        if json.loads(json.dumps(changed[key])) == before[key]:
            del changed[key]
    changed["intervals"] = {"from": mock.changed_from,
                            "list": [plain(i) for i in mock.intervals[mock.changed_from:]]}
    if len(mock.train) != curves:
        changed["train"], changed["test"] = mock.train, mock.test
    if len(mock.marks) != marks:
        changed["marks"] = mock.marks
    return changed
