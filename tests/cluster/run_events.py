"""The events of a run that trains: read while it writes them, and checked for samples that were not trained once."""
import json
import re


class RunEvents:
    """events.jsonl of a run. Only lines of the wanted kinds are parsed."""

    def __init__(self, path, *kinds):
        kinds = {*kinds, "primary_lost", "standby_lost", "standby_in_sync"}
        self.path, self.read = path, 0
        self.wanted = re.compile(f'"event":"({"|".join(sorted(kinds))})"')
        self.lacking = set()  # shards without a standby in sync, by the events so far

    def poll(self):
        """The events since the last call."""
        if not self.path.exists():
            return []
        with self.path.open() as file:
            file.seek(self.read)
            complete = file.read().rpartition("\n")[0]
        self.read += len(complete) + 1 if complete else 0
        events = [json.loads(line) for line in complete.splitlines() if self.wanted.search(line)]
        for event in events:
            if event["event"] == "standby_in_sync":
                self.lacking.discard(event["shard"])
            elif event["event"] in ("primary_lost", "standby_lost"):
                self.lacking.add(event["shard"])
        return events


def not_once(ranges, samples):
    """The number of an epoch's samples that were trained never or more than once. `ranges`: (first, last + 1) of each event."""
    wrong = at = 0
    for first, last in sorted(ranges):
        wrong += abs(first - at)
        at = max(at, last)
    return wrong + abs(samples - at)
