// The state of the run, changes to it, and the selected time.
(function (Leeway) {
  'use strict';

  let state = null;
  // 'now': the last complete interval and the current one. 'all': the whole run. A number: the
  // interval that contains this second, which survives intervals that grow.
  let selection = 'now';

  function replaceState(next) {
    state = {...next, intervals: next.intervals.list};
    if (state.ended && selection === 'now') selection = 'all';
    return new Set(Object.keys(state));
  }

  // Applies a change; returns the changed keys.
  function applyChange(change) {
    const keys = new Set(Object.keys(change));
    for (const key of keys) {
      if (key === 'intervals') {
        state.intervals.length = Math.min(state.intervals.length, change.intervals.from);
        for (const interval of change.intervals.list) state.intervals.push(interval);
      } else {
        state[key] = change[key];
      }
    }
    if (keys.has('ended') && state.ended && selection === 'now') {
      selection = 'all';
      keys.add('selection');
    }
    return keys;
  }

  function select(next) {
    selection = next;
  }

  function lastIndex() {
    return Math.max(0, state.intervals.length - 1);
  }

  function indexAt(seconds) {
    return Math.min(lastIndex(), Math.max(0, Math.floor(seconds / state.width + 1e-9)));
  }

  // The selected time: indexes of intervals (`first` to `last`), seconds and kind.
  function selected() {
    const last = lastIndex();
    let first = 0;
    let end = last;
    if (selection === 'now') first = Math.max(0, last - 1);
    else if (selection !== 'all') first = end = indexAt(selection);
    const until = end === last ? Math.max(state.now, first * state.width) : (end + 1) * state.width;
    return {kind: typeof selection === 'number' ? 'interval' : selection, first, last: end,
            begin: first * state.width, until};
  }

  function selectedText() {
    const {kind, begin, until} = selected();
    const span = Leeway.text.span(begin, until, Math.min(1, state.width / 2));
    if (kind === 'all') return `whole run, ${span}`;
    return kind === 'now' ? `now, ${span}` : span;
  }

  // The end of a sentence about the selected time. The present needs no times, which would change
  // with each frame.
  function selectedPhrase() {
    const {kind, begin, until} = selected();
    if (kind !== 'interval') return kind === 'all' ? ' in the whole run' : ' now';
    const step = Math.min(1, state.width / 2);
    const {moment} = Leeway.text;
    return ` from ${moment(begin, step)} to ${moment(until, step)}${until < 600 ? ' s' : ''}`;
  }

  // The server's sentence of a view that shows the present, if it is about the selected time; else
  // ''. After the end, it is about the whole run.
  function sentenceOfNow(name) {
    const wanted = state.ended ? 'all' : 'now';
    return selected().kind === wanted ? state.sentences[name] : '';
  }

  // Sums over the selected intervals.
  function sums() {
    const {first, last} = selected();
    const total = {samples: 0, iterations: 0, updates: 0, compute: 0, wait: 0, push_bytes: 0,
                   pull_bytes: 0, stage_bytes: 0, byCause: new Map(), byEdge: new Map(), leads: []};
    for (let i = first; i <= last && i < state.intervals.length; i += 1) {
      const interval = state.intervals[i];
      for (const key of ['samples', 'iterations', 'updates', 'compute', 'push_bytes', 'pull_bytes',
                         'stage_bytes']) {
        total[key] += interval[key];
      }
      interval.leads.forEach((n, lead) => { total.leads[lead] = (total.leads[lead] ?? 0) + n; });
      const waits = waitsOf(interval);
      total.wait += waits.total;
      for (const [cause, seconds] of waits.byCause) add(total.byCause, cause, seconds);
      for (const [row, cause, seconds] of interval.waits) {
        add(total.byEdge, row * state.cause_names.length + cause, seconds);
      }
    }
    return total;
  }

  function add(map, key, value) {
    map.set(key, (map.get(key) ?? 0) + value);
  }

  // Waiting seconds of an interval by cause. An interval that changes arrives as a new object, and
  // the entry of the old one is collected with it.
  const waitsCache = new WeakMap();

  function waitsOf(interval) {
    let waits = waitsCache.get(interval);
    if (!waits) {
      waits = {total: 0, byCause: new Map()};
      for (const [, cause, seconds] of interval.waits) {
        waits.total += seconds;
        add(waits.byCause, cause, seconds);
      }
      waitsCache.set(interval, waits);
    }
    return waits;
  }

  // [cause, seconds] of the selected time, longest first. The server's figures of the whole run are
  // exact; the intervals of a long run have lost none, so both agree.
  function selectedCauses() {
    if (selected().kind === 'all') return state.causes.map((c) => [c.cause, c.seconds]);
    return [...sums().byCause].sort((a, b) => b[1] - a[1]);
  }

  function causeName(cause) {
    return state.cause_names[cause] ?? `cause ${cause}`;
  }

  function rowName(row) {
    return state.run.rows[row]?.name ?? `row ${row}`;
  }

  // The right end of every time axis.
  function endOfTime() {
    return Math.max(state.intervals.length * state.width, state.width, state.now, 1e-6);
  }

  Leeway.run = {
    replaceState, applyChange, select, selected, selectedText, selectedPhrase, sentenceOfNow, sums,
    waitsOf, selectedCauses, causeName, rowName, endOfTime, indexAt,
    get state() { return state; },
  };
})(globalThis.Leeway ??= {});
