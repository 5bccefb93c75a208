"""Synthetic states of a run, in the format that the page reads. Only the page's test uses them.

A small simulation of bounded staleness computes leads, parked pulls and waits, so that the figures
of a state agree with each other as those of a real run do.
"""
import heapq
import math
import random

MAX_INTERVALS = 240
MAX_LEADS = 17
INFRASTRUCTURE = ["samples", "requests", "weights", "stage before", "stage after"]


def empty_interval(rows):
    return {"samples": 0, "iterations": 0, "updates": 0, "compute": 0.0, "waits": {},
            "lead": [-1] * rows, "parked": [0] * rows, "leads": [0] * MAX_LEADS, "alive": 0,
            "taking_part": 0, "contributing": set(), "push_bytes": 0, "pull_bytes": 0,
            "stage_bytes": 0}


def merge(a, b):
    both = dict(a)
    for key in ("samples", "iterations", "updates", "compute", "push_bytes", "pull_bytes",
                "stage_bytes"):
        both[key] = a[key] + b[key]
    both["waits"] = dict(a["waits"])
    for key, seconds in b["waits"].items():
        both["waits"][key] = both["waits"].get(key, 0) + seconds
    both["lead"] = [max(x, y) for x, y in zip(a["lead"], b["lead"])]
    both["parked"] = [x + y for x, y in zip(a["parked"], b["parked"])]
    both["leads"] = [x + y for x, y in zip(a["leads"], b["leads"])]
    both["alive"] = b["alive"]
    both["taking_part"] = b["taking_part"]
    both["contributing"] = a["contributing"] | b["contributing"]
    return both


def plain(interval):
    """The interval as the page receives it."""
    out = dict(interval)
    out["waits"] = [[row, cause, round(s, 6)] for (row, cause), s in interval["waits"].items()]
    out["contributing"] = len(interval["contributing"])
    out["compute"] = round(interval["compute"], 6)
    return out


class MockRun:
    """`kind` is straggler (8 workers, ssp(4)), thousand (1,000 workers) or pipeline (2 x 4)."""

    def __init__(self, kind, seed=7, hostile=False):
        self.kind = kind
        self.random = random.Random(seed)
        self.stages = 4 if kind == "pipeline" else 1
        self.members = {"straggler": 8, "thousand": 1000, "pipeline": 2}[kind]
        self.workers = self.members * self.stages
        self.bound = {"straggler": 4, "thousand": 8, "pipeline": 1}[kind]
        self.batch = 64 if kind == "pipeline" else 32
        self.base = {"straggler": 0.02, "thousand": 0.4, "pipeline": 0.16}[kind]
        self.seed = seed
        self.rows = min(self.workers, 64)
        names = [f"worker {w}" for w in range(self.workers)]
        if kind == "thousand":
            edges = [r * self.workers // 64 for r in range(65)]
            self.row_names = [f"workers {a}-{b - 1}" for a, b in zip(edges, edges[1:])]
        else:
            self.row_names = list(names)
        self.name = {"straggler": "fashion-mlp", "thousand": "thousand-workers",
                     "pipeline": "transformer-2x4"}[kind]
        if hostile:
            self.name = "<img src=x onerror=alert(1)></script>"
            self.row_names[3] = names[3] = "<b onmouseover=alert(2)>worker 3</b>"
        self.causes = names + INFRASTRUCTURE
        self.width = 1.0 if kind == "thousand" else 0.25
        self.now = 0.0
        self.ended = None
        self.intervals = [self.new_interval()]
        self.changed_from = 0
        self.clock = [0] * self.members
        self.clock_counts = {0: self.members}
        self.min_clock = 0
        self.parked = {}
        self.dead = set()
        self.totals = {"iterations": 0, "samples": 0, "push_bytes": 0, "pull_bytes": 0,
                       "stage_bytes": 0, "parked_pulls": 0, "clock_gap": 0, "compute": 0.0,
                       "wait": 0.0}
        self.lost_events = 0
        self.cause_seconds = {}
        self.leads_by_row = [[0] * MAX_LEADS for _ in range(self.rows)]
        self.shards = 2 if kind != "thousand" else 8
        self.leads_by_shard = [[0] * MAX_LEADS for _ in range(self.shards)]
        self.train, self.test, self.marks = [], [], []
        self.operations = []
        self.events = []
        for member in range(self.members):
            heapq.heappush(self.events, (self.duration(member, 0.0), member, 0.0))

    def new_interval(self):
        return empty_interval(self.rows)

    def row(self, worker):
        return worker * self.rows // self.workers

    def is_slow(self, member, time):
        if self.kind == "straggler":
            return member == 3 and (time // 6) % 3 != 2
        if self.kind == "thousand":
            return member % 331 == 117 and (time // 15 + member) % 3 != 2
        return False

    def duration(self, member, time):
        factor = self.random.lognormvariate(0, 0.09)
        return self.base * factor * (2.6 if self.is_slow(member, time) else 1)

    def interval_at(self, time):
        while time >= len(self.intervals) * self.width:
            if len(self.intervals) == MAX_INTERVALS:
                pairs = zip(self.intervals[::2], self.intervals[1::2])
                self.intervals = [merge(a, b) for a, b in pairs]
                self.width *= 2
                self.changed_from = 0
            else:
                self.intervals.append(self.new_interval())
        return self.intervals[-1]

    def wait(self, interval, worker, cause, seconds):
        key = (self.row(worker), cause)
        interval["waits"][key] = interval["waits"].get(key, 0.0) + seconds
        self.cause_seconds[cause] = self.cause_seconds.get(cause, 0.0) + seconds
        self.totals["wait"] += seconds

    def advance(self, until):
        while self.events and self.events[0][0] <= until:
            time, member, began = heapq.heappop(self.events)
            if member not in self.dead:
                self.finish(member, began, time)
        self.now = until
        interval = self.interval_at(until)
        alive = (self.members - len(self.dead)) * self.stages
        interval["alive"] = alive
        interval["taking_part"] = alive
        self.faults(until)

    def faults(self, time):
        if self.kind == "straggler" and time > 31 and 6 not in self.dead and time < 41:
            self.dead.add(6)
            self.parked.pop(6, None)
            self.count_clock(6, -1)
            self.raise_min_clock(time, 6)
            self.mark(time, "evicted", self.row_names[6] + " was evicted: no sign of life for 2 s")
        if time > 41 and 6 in self.dead:
            self.dead.discard(6)
            self.clock[6] = self.min_clock
            self.count_clock(6, +1)
            self.mark(time, "returned", self.row_names[6] + " returned")
            heapq.heappush(self.events, (time + self.duration(6, time), 6, time))

    def mark(self, time, kind, text):
        self.marks.append({"seconds": round(time, 4), "kind": kind, "text": text})

    def count_clock(self, member, change):
        clock = self.clock[member]
        self.clock_counts[clock] = self.clock_counts.get(clock, 0) + change
        if not self.clock_counts[clock]:
            del self.clock_counts[clock]

    def gap_now(self):
        live = [clock for member, clock in enumerate(self.clock) if member not in self.dead]
        return max(live) - min(live)

    def finish(self, member, began, time):
        interval = self.interval_at(time)
        self.count_clock(member, -1)
        self.clock[member] += 1
        self.count_clock(member, +1)
        self.compute(interval, member, began, time)
        interval["samples"] += self.batch
        interval["iterations"] += 1
        interval["updates"] += 1
        size = 270_000
        interval["push_bytes"] += size
        interval["pull_bytes"] += 2 * size
        totals = self.totals
        between = 1000 * self.batch * (self.stages - 1)
        interval["stage_bytes"] += between
        totals["stage_bytes"] += between
        totals["push_bytes"] += size
        totals["pull_bytes"] += 2 * size
        totals["samples"] += self.batch
        totals["iterations"] += 1
        if totals["iterations"] % (30 if self.kind != "thousand" else 1000) == 0:
            self.report_loss(time)
        self.raise_min_clock(time, member)
        gap = self.clock[member] - self.min_clock
        totals["clock_gap"] = max(totals["clock_gap"], gap)
        if gap <= self.bound:
            self.start(member, time, time)
        else:
            self.parked[member] = time
            totals["parked_pulls"] += 1
            interval["parked"][self.row(member * self.stages)] += 1

    def compute(self, interval, member, began, time):
        if self.stages == 1:
            busy = (time - began) * 0.97
            interval["compute"] += busy
            self.totals["compute"] += busy
            interval["contributing"].add(member)
            base = self.causes.index("samples")
            for cause, share in ((base, 0.004), (base + 1, 0.011), (base + 2, 0.015)):
                self.wait(interval, member, cause, (time - began) * share)
            return
        iteration = self.clock[member] - 1
        stage_busy = self.one_forward_one_backward(member, iteration, began)
        before = self.causes.index("stage before")
        for stage, busy in enumerate(stage_busy):
            worker = member * self.stages + stage
            interval["contributing"].add(worker)
            interval["compute"] += busy
            self.totals["compute"] += busy
            idle = max(0.0, time - began - busy)
            share = stage / (self.stages - 1)
            self.wait(interval, worker, before, idle * share)
            self.wait(interval, worker, before + 1, idle * (1 - share))

    def factor(self, member, stage):
        return 1.7 if member == 1 and stage == 1 else 1.0

    def one_forward_one_backward(self, member, iteration, began, micro_batches=6):
        """Appends the iteration's operations; returns the busy seconds of each stage."""
        unit = self.base / 27
        orders = []
        for stage in range(self.stages):
            warm = min(self.stages - stage, micro_batches)
            order = [(0, m) for m in range(warm)]
            for m in range(micro_batches):
                order.append((1, m))
                if warm + m < micro_batches:
                    order.append((0, warm + m))
            orders.append(order)
        ends, free, busy = {}, [began] * self.stages, [0.0] * self.stages
        position = [0] * self.stages
        while any(p < len(o) for p, o in zip(position, orders)):
            for stage in range(self.stages):
                while position[stage] < len(orders[stage]):
                    kind, m = orders[stage][position[stage]]
                    if kind == 0:
                        needs = (0, m, stage - 1) if stage else None
                    else:
                        last = stage == self.stages - 1
                        needs = (0, m, stage) if last else (1, m, stage + 1)
                    if needs and needs not in ends:
                        break
                    start = max(free[stage], ends[needs] if needs else began)
                    length = unit * (1 + kind) * self.factor(member, stage)
                    length *= self.random.lognormvariate(0, 0.04)
                    free[stage] = ends[(kind, m, stage)] = start + length
                    busy[stage] += length
                    worker = member * self.stages + stage
                    self.operations.append([worker, kind, m, 0, iteration, round(start, 6),
                                            round(start + length, 6)])
                    position[stage] += 1
        return busy

    def raise_min_clock(self, time, culprit):
        lowest = min(self.clock_counts) if self.clock_counts else self.min_clock
        if lowest <= self.min_clock:
            return
        self.min_clock = lowest
        for member, since in list(self.parked.items()):
            if self.clock[member] - self.min_clock <= self.bound:
                del self.parked[member]
                interval = self.interval_at(time)
                for stage in range(self.stages):
                    self.wait(interval, member * self.stages + stage, culprit * self.stages,
                              time - since)
                self.start(member, time, since)

    def start(self, member, time, since):
        interval = self.interval_at(time)
        lead = max(0, self.clock[member] - self.min_clock)
        worker = member * self.stages
        for stage in range(self.stages):
            row = self.row(worker + stage)
            interval["lead"][row] = max(interval["lead"][row], lead)
            self.leads_by_row[row][min(lead, MAX_LEADS - 1)] += 1
        interval["leads"][min(lead, MAX_LEADS - 1)] += 1
        shard = self.random.randrange(self.shards)
        self.leads_by_shard[shard][min(lead, MAX_LEADS - 1)] += 1
        length = self.duration(member, time)
        if self.stages > 1:
            length *= 1.7 if member == 1 else 1.15
        heapq.heappush(self.events, (time + length, member, time))

    def report_loss(self, time):
        samples = self.totals["samples"]
        seen = samples / (30_000 if self.kind != "thousand" else 2_000_000)
        loss = 0.24 + 2.0 * math.exp(-2.2 * math.sqrt(seen)) + self.random.gauss(0, 0.012)
        accuracy = 0.9 - 0.8 * math.exp(-2.4 * math.sqrt(seen)) + self.random.gauss(0, 0.004)
        self.train.append([round(time, 4), samples, round(loss, 5), round(accuracy, 5)])
        if len(self.train) > 512:
            self.train = self.train[::2]
        if len(self.train) % 20 == 0:
            self.test.append([round(time, 4), samples, round(loss + 0.03, 5),
                              round(accuracy - 0.01, 5)])
            self.mark(time, "checkpoint", f"checkpoint {len(self.test)} of {samples:,} samples")
            del self.test[:-512], self.marks[:-256]
