// View 2: worker x time. The colour is the largest lead over the slowest worker at an answered
// pull, its scale ends at the bound, and marked cells had parked pulls.
(function (Leeway) {
  'use strict';

  const {text, colours, run, cards, timeline} = Leeway;

  function setup(view) {
    view.canvas = cards.addCanvas(view, 240);
    timeline.selectByPointer(view.canvas, () => view.inner);
    cards.addTip(view.canvas, (x, y) => tip(view, x, y));
    view.key = cards.addCanvas(view, 34, 'Colour scale');
    view.cells = document.createElement('canvas');
  }

  // The lead at the end of the scale: the bound, else the largest lead seen.
  function scaleEnd() {
    const {bound, intervals} = run.state;
    if (bound !== null) return Math.max(1, bound);
    let largest = 1;
    for (const interval of intervals) for (const lead of interval.lead) {
      if (lead > largest) largest = lead;
    }
    return largest;
  }

  function draw(view) {
    const {state} = run;
    cards.say(view, sentence());
    const rows = Math.max(1, state.run.rows.length);
    cards.setHeight(view.canvas, Math.min(400, Math.max(150, rows * 30)) + 26);
    const {ctx, width, height} = cards.context(view.canvas);
    const inner = timeline.area(width, height, {left: width < 420 ? 70 : 104});
    const end = scaleEnd();
    view.inner = inner;
    view.rowHeight = inner.height / rows;
    paintCells(view, ctx, inner, rows, end);
    drawParked(view, ctx, inner, rows);
    drawNames(ctx, inner, rows, view.rowHeight);
    timeline.drawTimeAxis(ctx, inner);
    timeline.drawCursor(ctx, inner);
    drawKey(view, end);
  }

  // One pixel per cell, scaled up without smoothing.
  function paintCells(view, ctx, inner, rows, end) {
    const {intervals, width} = run.state;
    const columns = Math.max(1, intervals.length);
    const {cells} = view;
    if (cells.width !== columns) cells.width = columns;
    if (cells.height !== rows) cells.height = rows;
    const small = cells.getContext('2d');
    const image = small.createImageData(columns, rows);
    const pixels = image.data;
    intervals.forEach((interval, column) => {
      for (let row = 0; row < rows; row += 1) {
        const lead = interval.lead[row] ?? -1;
        if (lead < 0) continue;
        const rgb = colours.ofScale('lead', lead / end);
        const at = 4 * (row * columns + column);
        pixels[at] = rgb[0];
        pixels[at + 1] = rgb[1];
        pixels[at + 2] = rgb[2];
        pixels[at + 3] = 255;
      }
    });
    small.putImageData(image, 0, 0);
    ctx.fillStyle = colours.colour('empty');
    ctx.fillRect(inner.left, inner.top, inner.width, inner.height);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(cells, inner.left, inner.top, inner.x(columns * width) - inner.left,
                  inner.height);
    if (view.rowHeight < 5) return;
    ctx.fillStyle = colours.colour('card');
    for (let row = 1; row < rows; row += 1) {
      ctx.fillRect(inner.left, Math.round(inner.top + row * view.rowHeight) - 0.5, inner.width, 1);
    }
  }

  // A stripe at the foot of cells with parked pulls; one for neighbouring cells.
  function drawParked(view, ctx, inner, rows) {
    const {intervals, width} = run.state;
    const height = Math.max(1.5, Math.min(4, view.rowHeight * 0.25));
    ctx.fillStyle = colours.colour('parked');
    for (let row = 0; row < rows; row += 1) {
      const top = inner.top + (row + 1) * view.rowHeight - height - (view.rowHeight < 5 ? 0 : 1);
      let first = -1;
      for (let column = 0; column <= intervals.length; column += 1) {
        const isParked = intervals[column]?.parked[row] > 0;
        if (isParked && first < 0) first = column;
        if (isParked || first < 0) continue;
        const left = inner.x(first * width);
        ctx.fillRect(left, top, inner.x(column * width) - left, height);
        first = -1;
      }
    }
  }

  function drawNames(ctx, inner, rows, rowHeight) {
    const every = Math.max(1, Math.ceil(13 / rowHeight));
    ctx.fillStyle = colours.colour('muted');
    ctx.textAlign = 'right';
    ctx.textBaseline = 'middle';
    for (let row = 0; row < rows; row += every) {
      ctx.fillText(fitText(ctx, run.rowName(row), inner.left - 10), inner.left - 6,
                   inner.top + (row + 0.5) * rowHeight);
    }
  }

  // Shortens a text until it fits.
  function fitText(ctx, name, width) {
    let length = Math.min(name.length, 40);
    let shown = text.ends(name, length);
    while (length > 2 && ctx.measureText(shown).width > width) {
      length -= 1;
      shown = text.ends(name, length);
    }
    return shown;
  }

  function drawKey(view, end) {
    const {bound} = run.state;
    const {ctx, width} = cards.context(view.key);
    const steps = Math.min(end + 1, 17);
    const cell = Math.min(22, (width - 160) / steps);
    const left = 34;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    ctx.fillStyle = colours.colour('muted');
    ctx.fillText('lead', 4, 10);
    for (let i = 0; i < steps; i += 1) {
      const lead = (i / (steps - 1)) * end;
      ctx.fillStyle = colours.css(colours.ofScale('lead', lead / end));
      ctx.fillRect(left + i * cell, 4, cell - 1, 12);
    }
    const right = left + steps * cell;
    ctx.fillStyle = colours.colour('muted');
    ctx.textAlign = 'center';
    ctx.fillText('0', left + cell / 2, 25);
    const limit = bound === null ? `${end} (no bound)`
      : bound === end ? `${end} = bound` : `${end}, bound ${bound}`;
    ctx.fillText(limit, Math.max(right - cell / 2, left + 60), 25);
    ctx.fillStyle = colours.colour('parked');
    ctx.fillRect(right + 22, 9, 16, 4);
    ctx.fillStyle = colours.colour('muted');
    ctx.textAlign = 'left';
    ctx.fillText('parked', right + 44, 10);
  }

  function sentence() {
    const {state} = run;
    const selected = run.selected();
    const stated = run.sentenceOfNow('staleness');
    if (stated) return stated;
    let largest = -1;
    let parked = 0;
    let row = 0;
    for (let i = selected.first; i <= selected.last && i in state.intervals; i += 1) {
      state.intervals[i].lead.forEach((lead, r) => {
        if (lead > largest) [largest, row] = [lead, r];
      });
      parked += state.intervals[i].parked.reduce((a, b) => a + b, 0);
    }
    if (largest < 0) {
      return `No pull is answered${run.selectedPhrase()}; ${text.plural(parked, 'pull')} parked.`;
    }
    const limit = state.bound === null ? 'without a bound' : `the bound is ${state.bound}`;
    return `Largest lead${run.selectedPhrase()}: ${text.plural(largest, 'iteration')}, by ` +
      `${text.brief(run.rowName(row))}; ${limit}. ${text.plural(parked, 'parked pull')}.`;
  }

  function tip(view, x, y) {
    const {intervals, width, run: {rows}} = run.state;
    const column = Math.floor(view.inner?.seconds(x) / width);
    const row = Math.floor((y - view.inner?.top) / view.rowHeight);
    if (!(column in intervals) || !(row in rows)) return null;
    const {lead, parked} = intervals[column];
    return [`${text.brief(run.rowName(row))}, ` +
              text.span(column * width, (column + 1) * width, width / 2),
            lead[row] < 0 ? 'no answered pull' : `lead ${lead[row]}`,
            `${text.plural(parked[row], 'parked pull')}`];
  }

  // The rows with the largest leads in the selected time.
  function table() {
    const {state} = run;
    const {first, last} = run.selected();
    const rows = state.run.rows.map((_, row) => {
      let lead = -1;
      let parked = 0;
      for (let i = first; i <= last && i in state.intervals; i += 1) {
        lead = Math.max(lead, state.intervals[i].lead[row]);
        parked += state.intervals[i].parked[row];
      }
      return {row, lead, parked};
    });
    rows.sort((a, b) => b.lead - a.lead || b.parked - a.parked || a.row - b.row);
    return {head: [`Worker, ${run.selectedText()}`, 'Largest lead', 'Parked pulls'],
            rows: rows.slice(0, 20).map(({row, lead, parked}) => [
              text.brief(run.rowName(row), 40), lead < 0 ? 'no answered pull' : text.count(lead),
              text.count(parked)])};
  }

  Leeway.views.push({id: 'staleness', needsEvents: true, title: 'Staleness map', setup, draw, table,
                     keys: ['intervals', 'width', 'bound', 'sentences', 'ended', 'run']});
  Object.assign(Leeway, {fitText, leadScaleEnd: scaleEnd});
})(globalThis.Leeway ??= {});
