// Line and bar charts by Chart.js, with the page's colours, the cursor, the bound and marks.
(function (Leeway) {
  'use strict';

  const {text, colours, run, cards} = Leeway;
  const charts = [];

  const markColours = {evicted: 'danger', left: 'accent', returned: 'good', joined: 'good',
                       checkpoint: 'muted', bound: 'bound', replica: 'accent', end: 'ink'};

  function markColour(kind) {
    return colours.colour(markColours[kind] ?? 'muted');
  }

  // Draws chart.cursor ([from, to] on the x axis), chart.marks ([x, kind]) and chart.bound (x).
  const overlay = {
    id: 'overlay',
    beforeDatasetsDraw(chart) {
      const {ctx, chartArea: box} = chart;
      if (!box) return;
      ctx.save();
      for (const [x, kind] of chart.marks ?? []) {
        const at = Math.round(chart.scales.x.getPixelForValue(x)) + 0.5;
        if (at < box.left - 1 || at > box.right + 1) continue;
        const plain = kind === 'checkpoint';
        ctx.strokeStyle = ctx.fillStyle = markColour(kind);
        ctx.setLineDash(plain ? [] : [3, 3]);
        ctx.beginPath();
        ctx.moveTo(at, plain ? box.bottom - 7 : box.top);
        ctx.lineTo(at, box.bottom);
        ctx.stroke();
        if (plain) continue;
        ctx.beginPath();
        ctx.moveTo(at - 4, box.top - 1);
        ctx.lineTo(at + 4, box.top - 1);
        ctx.lineTo(at, box.top + 6);
        ctx.fill();
      }
      ctx.restore();
    },
    afterDatasetsDraw(chart) {
      const {ctx, chartArea: box} = chart;
      if (!box) return;
      ctx.save();
      if (chart.cursor) {
        const [from, to] = chart.cursor.map((x) => chart.scales.x.getPixelForValue(x));
        ctx.strokeStyle = colours.colour('cursor');
        ctx.lineWidth = 1.5;
        ctx.strokeRect(from - 0.75, box.top, Math.max(2, to - from) + 1.5, box.height);
      }
      if (chart.bound) drawBound(chart, ctx, box);
      ctx.restore();
    },
  };

  function drawBound(chart, ctx, box) {
    const at = Math.min(box.right - 1, chart.scales.x.getPixelForValue(chart.bound.at));
    ctx.strokeStyle = ctx.fillStyle = colours.colour('bound');
    ctx.lineWidth = 2;
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    ctx.moveTo(at, box.top);
    ctx.lineTo(at, box.bottom);
    ctx.stroke();
    ctx.textAlign = at > box.right - 30 ? 'right' : 'center';
    ctx.textBaseline = 'bottom';
    ctx.font = '600 11px system-ui, sans-serif';
    ctx.fillText(chart.bound.label, at, box.top - 3);
  }

  function axis(extra = {}) {
    const {ticks, ...rest} = extra;
    return {
      grid: {color: colours.colour('grid'), borderColor: colours.colour('line'), tickLength: 4},
      ticks: {color: colours.colour('muted'), font: {size: 11}, maxRotation: 0,
              autoSkipPadding: 14, ...ticks},
      title: {color: colours.colour('muted'), font: {size: 11}},
      ...rest,
    };
  }

  function timeAxis() {
    return axis({type: 'linear', min: 0, grid: {display: false,
                                                borderColor: colours.colour('line')},
                 ticks: {maxTicksLimit: 7, includeBounds: false, callback: timeTick}});
  }

  function timeTick(value, index, ticks) {
    const every = ticks.length > 1 ? ticks[1].value - ticks[0].value : 1;
    return text.moment(value, every) + (value < 600 ? ' s' : '');
  }

  // A chart of the view; `axes()` returns its scales, and is called again when the theme changes.
  function make(view, canvas, type, datasets, axes, options = {}) {
    const paints = datasets.map((set) => set.paint ?? {});
    paintDatasets(datasets, paints);
    const chart = new Chart(canvas, {
      type, data: {labels: [], datasets}, plugins: [overlay],
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, normalized: true,
        parsing: type === 'bar', scales: axes(), interaction: {mode: 'nearest', axis: 'x',
                                                               intersect: false},
        plugins: {legend: {display: false},
                  tooltip: {backgroundColor: '#101820', titleColor: '#ffffff',
                            bodyColor: '#ffffff', animation: false, displayColors: false,
                            filter: (item, i, all) => all.findIndex(
                              (other) => other.datasetIndex === item.datasetIndex) === i,
                            ...options.tooltip}},
        layout: {padding: {top: type === 'bar' ? 18 : 8, right: 8}},
        elements: {point: {radius: 0, hitRadius: 8}, line: {borderWidth: 2}},
        ...options.chart,
      },
    });
    chart.axes = axes;
    chart.paints = paints;
    charts.push(chart);
    return chart;
  }

  // Sets the colours that datasets name in `paint`: {borderColor: 'accent'}.
  function paintDatasets(datasets, paints) {
    datasets.forEach((set, i) => {
      for (const [key, name] of Object.entries(paints[i])) set[key] = colours.colour(name);
    });
  }

  function repaint() {
    for (const chart of charts) {
      paintDatasets(chart.data.datasets, chart.paints);
      chart.options.scales = chart.axes();
    }
  }

  // The cursor on an axis of seconds; `map` converts seconds to the axis of the chart.
  function setCursor(chart, map = (s) => s) {
    const {kind, begin, until} = run.selected();
    chart.cursor = kind === 'interval' ? [map(begin), map(until)] : null;
  }

  function setMarks(chart, map = (s) => s) {
    chart.marks = run.state.marks.map((mark) => [map(mark.seconds), mark.kind]);
  }

  // Selects the interval at the pointer on a chart whose x axis is time.
  function selectByPointer(chart, isTime = () => true) {
    Leeway.timeline.selectByPointer(chart.canvas, () => {
      const x = chart.scales.x;
      if (!isTime() || !x) return null;
      return {seconds: (pixel) => x.getValueForPixel(pixel), end: run.endOfTime()};
    });
  }

  // A value for each interval as points, at the middle of the intervals. `valueOf` has the seconds
  // that the interval covers as its second argument. The first third of an interval tells too
  // little about it to be shown.
  function points(valueOf) {
    const {intervals, width, now} = run.state;
    const last = intervals.length - 1;
    const lastLength = Math.min(width, now - last * width);
    const shown = last > 0 && lastLength < width / 3 ? last : last + 1;
    return intervals.slice(0, shown).map((interval, i) => ({
      x: (i + 0.5) * width, y: valueOf(interval, i === last ? lastLength : width)}));
  }

  Leeway.charts = {make, axis, timeAxis, repaint, setCursor, setMarks, selectByPointer, points,
                   markColour};
})(globalThis.Leeway ??= {});
