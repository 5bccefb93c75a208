// View 5: workers alive, taking part and contributing. View 6: loss and accuracy against time,
// samples or updates, with test points and marks.
(function (Leeway) {
  'use strict';

  const {text, colours, run, cards, charts} = Leeway;

  function setupAlive(view) {
    const canvas = cards.addCanvas(view, 200);
    const line = (label, paint, width, order) => ({label, data: [], stepped: 'middle', order,
                                                   borderWidth: width,
                                                   paint: {borderColor: paint}});
    // The lines often coincide, so the later ones are thinner and leave the earlier ones visible.
    view.chart = charts.make(view, canvas, 'line',
      [line('alive', 'line-alive', 8, 3), line('taking part', 'line-part', 4.5, 2),
       line('contributing', 'line-contributing', 1.8, 1)],
      () => ({x: charts.timeAxis(),
              y: charts.axis({min: 0,
                              ticks: {precision: 0, maxTicksLimit: 6, includeBounds: false,
                                      callback: (v) => text.short(v)},
                              afterFit: (scale) => { scale.width = 44; }})}),
      {tooltip: {callbacks: {
        title: (items) => intervalTitle(items[0].parsed.x),
        label: (item) => `${text.count(item.parsed.y)} ${item.dataset.label}`,
      }}});
    charts.selectByPointer(view.chart);
    cards.addLegend(view, [['line-alive', 'alive', 'line'], ['line-part', 'taking part', 'line'],
                           ['line-contributing', 'contributing', 'line']]);
  }

  function intervalTitle(seconds) {
    const {width} = run.state;
    const begin = run.indexAt(seconds) * width;
    return text.span(begin, begin + width, width / 2);
  }

  function drawAlive(view) {
    const {state} = run;
    const {chart} = view;
    cards.say(view, aliveSentence());
    const [alive, part, contributing] = chart.data.datasets;
    alive.data = charts.points((interval) => interval.alive);
    part.data = charts.points((interval) => interval.taking_part);
    contributing.data = charts.points((interval) => interval.contributing);
    chart.options.scales.x.max = run.endOfTime();
    chart.options.scales.y.max = state.run.workers * 1.1;
    charts.setCursor(chart);
    charts.setMarks(chart);
    chart.marks = chart.marks.filter(([, kind]) => kind !== 'checkpoint');
    chart.update('none');
  }

  function aliveSentence() {
    const {state} = run;
    const {kind, last} = run.selected();
    if (kind !== 'interval' && state.sentences.alive) return state.sentences.alive;
    const interval = state.intervals[last];
    if (!interval) return 'No worker has started.';
    // The present interval is incomplete, so the last complete one tells how many contribute.
    const complete = kind === 'interval' ? interval : state.intervals[last - 1] ?? interval;
    return `${text.count(interval.alive)} of ${text.plural(state.run.workers, 'worker')} are ` +
      `alive, ${text.count(interval.taking_part)} take part, ` +
      `${text.count(complete.contributing)} contribute.`;
  }

  // Membership changes, checkpoints and the like, latest first.
  function aliveTable() {
    const rows = run.state.marks.slice(-20).reverse()
      .map((mark) => [text.seconds(mark.seconds), mark.kind, text.brief(mark.text, 120)]);
    return {head: ['At', 'Mark', 'Text'], rows};
  }

  function setupLoss(view) {
    view.x = 'time';
    view.y = 'loss';
    cards.addChoice(view, 'Horizontal axis', [['time', 'Time'], ['samples', 'Samples'],
                                              ['updates', 'Updates']], (x) => { view.x = x; });
    view.yChoice = cards.addChoice(view, 'Vertical axis', [['loss', 'Loss'],
                                   ['accuracy', 'Accuracy']], (y) => { view.y = y; });
    view.canvas = cards.addCanvas(view, 272);
    const percent = () => view.y === 'accuracy';
    view.chart = charts.make(view, view.canvas, 'line',
      [{label: 'train', data: [], borderWidth: 1.6, order: 2,
        paint: {borderColor: 'line-train', backgroundColor: 'line-train'}},
       {label: 'test', data: [], borderWidth: 1.6, borderDash: [4, 3], pointRadius: 3.5, order: 1,
        paint: {borderColor: 'line-test', backgroundColor: 'line-test'}}],
      () => ({x: view.x === 'time' ? charts.timeAxis() : countAxis(view.x),
              y: charts.axis({ticks: {maxTicksLimit: 7,
                                      callback: (v) => (percent() ? text.share(v, 0)
                                                                  : text.short(v))},
                              afterFit: (scale) => { scale.width = 44; }})}),
      {tooltip: {callbacks: {
        title: (items) => xTitle(view, items[0].parsed.x),
        label: ({dataset, parsed}) => `${dataset.label} ${view.y} ` +
          (percent() ? text.share(parsed.y, 2) : text.number(parsed.y, 4)),
        footer: (items) => nearMark(view, items[0]),
      }}});
    charts.selectByPointer(view.chart, () => view.x === 'time');
    cards.addLegend(view, [['line-train', 'train', 'line'], ['line-test', 'test', 'dot'],
                           ['danger', 'evicted', 'down'], ['good', 'joined, returned', 'down'],
                           ['accent', 'left, replica', 'down'],
                           ['bound', 'bound changed', 'down'], ['ink', 'end', 'down'],
                           ['muted', 'checkpoint', 'tick']]);
  }

  function countAxis() {
    return charts.axis({type: 'linear', min: 0,
                        grid: {display: false, borderColor: colours.colour('line')},
                        ticks: {maxTicksLimit: 7, includeBounds: false,
                                callback: (v) => text.short(v)}});
  }

  function xTitle(view, x) {
    return view.x === 'time' ? text.seconds(x) : `${text.count(x)} ${view.x}`;
  }

  // The text of a mark near a point of the chart.
  function nearMark(view, item) {
    const map = axisMap(view.x);
    const scale = item.chart.scales.x;
    const at = scale.getPixelForValue(item.parsed.x);
    const mark = run.state.marks.find((m) =>
      Math.abs(scale.getPixelForValue(map(m.seconds)) - at) < 5);
    return mark ? text.brief(mark.text, 60) : '';
  }

  // Converts seconds to the unit of the horizontal axis. `train` has the samples at each point; the
  // intervals have the updates.
  function axisMap(x) {
    if (x === 'time') return (seconds) => seconds;
    const {train, intervals, width} = run.state;
    if (x === 'samples') {
      return (seconds) => interpolate([[0, 0], ...train], seconds);
    }
    let sum = 0;
    const sums = [[0, 0]];
    intervals.forEach((interval, i) => {
      sum += interval.updates;
      sums.push([(i + 1) * width, sum]);
    });
    return (seconds) => interpolate(sums, seconds);
  }

  function interpolate(list, at) {
    let low = 0;
    let high = list.length - 1;
    if (at >= list[high][0]) return list[high][1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (list[middle][0] <= at) low = middle;
      else high = middle;
    }
    const [x0, y0] = list[low];
    const [x1, y1] = list[high];
    return x1 > x0 ? y0 + ((at - x0) / (x1 - x0)) * (y1 - y0) : y0;
  }

  function drawLoss(view) {
    const {state} = run;
    const {chart} = view;
    view.yChoice.hidden = !state.run.has_accuracy;
    cards.say(view, lossSentence());
    const map = axisMap(view.x);
    const column = view.y === 'accuracy' ? 3 : 2;
    const points = (list) => list.filter((point) => Number.isFinite(point[column]))
      .map((point) => ({x: view.x === 'samples' ? point[1] : map(point[0]), y: point[column]}));
    chart.data.datasets[0].data = points(state.train);
    chart.data.datasets[1].data = points(state.test);
    chart.options.scales = chart.axes();
    chart.options.scales.x.max = view.x === 'time' ? run.endOfTime()
      : Math.max(1, ...chart.data.datasets.map((set) => set.data.at(-1)?.x ?? 0));
    charts.setCursor(chart, map);
    charts.setMarks(chart, map);
    chart.update('none');
  }

  function lossSentence() {
    const {state} = run;
    if (!state.run.has_losses) return 'This run has no losses: its gradients are not computed.';
    const {kind, until} = run.selected();
    if (kind !== 'interval' && state.sentences.loss) return state.sentences.loss;
    const before = (list) => list.findLast((point) => point[0] <= until + 1e-9);
    const train = kind === 'interval' ? before(state.train) : state.train.at(-1);
    const test = kind === 'interval' ? before(state.test) : state.test.at(-1);
    if (!train && !test) return 'No loss is reported yet.';
    const part = (name, point) => `${name} loss ${text.number(point[2], 4)}` +
      (state.run.has_accuracy && Number.isFinite(point[3])
        ? `, accuracy ${text.share(point[3], 2)}` : '');
    const parts = [];
    if (train) parts.push(part('train', train));
    if (test) parts.push(part('test', test));
    const where = kind === 'interval' ? ` until ${text.seconds(until)}` : '';
    return `${text.capital(parts.join('; '))}${where}.`;
  }

  function lossTable() {
    const {train, test, run: {has_accuracy}} = run.state;
    const thin = (list, limit) => list.filter((_, i) =>
      i === list.length - 1 || i % Math.ceil(list.length / limit) === 0);
    const rows = [...thin(train, 10).map((p) => ['train', p]),
                  ...thin(test, 8).map((p) => ['test', p])].sort((a, b) => a[1][0] - b[1][0]);
    return {head: ['At', 'Set', 'Samples', 'Loss', ...(has_accuracy ? ['Accuracy'] : [])],
            rows: rows.map(([set, p]) => [text.seconds(p[0]), set, text.count(p[1]),
              text.number(p[2], 4), ...(has_accuracy ? [text.share(p[3], 2)] : [])])};
  }

  Leeway.views.push(
    {id: 'loss', title: 'Loss', setup: setupLoss, draw: drawLoss, table: lossTable,
     keys: ['train', 'test', 'intervals', 'width', 'marks', 'run', 'ended', 'sentences']},
    {id: 'alive', needsEvents: true, title: 'Alive, taking part, contributing',
     setup: setupAlive, draw: drawAlive, table: aliveTable, summary: 'Table of marks',
     keys: ['intervals', 'width', 'marks', 'ended', 'sentences']});
})(globalThis.Leeway ??= {});
