// Time axes of canvases: ticks, the cursor of the selected interval, and selection by pointer.
(function (Leeway) {
  'use strict';

  const {text, colours, run, cards} = Leeway;

  // The inner area of a canvas whose x axis is the time of the run.
  function area(width, height, {left = 44, right = 10, top = 6, bottom = 20} = {}) {
    const inner = {left, top, width: Math.max(1, width - left - right),
                   height: Math.max(1, height - top - bottom)};
    inner.end = run.endOfTime();
    inner.x = (seconds) => left + (seconds / inner.end) * inner.width;
    inner.seconds = (x) => ((x - left) / inner.width) * inner.end;
    return inner;
  }

  // A step of 1, 2 or 5 times a power of ten for at most `count` ticks in `range`; minutes and
  // hours for long ranges of time.
  function step(range, count, isTime) {
    const raw = range / Math.max(1, count);
    if (isTime && raw > 30) {
      const steps = [60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 43200, 86400];
      return steps.find((s) => s >= raw) ?? 86400 * Math.ceil(raw / 86400);
    }
    const power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find((m) => m * power >= raw - 1e-12);
  }

  function drawTimeAxis(ctx, inner, begin = 0, end = inner.end) {
    const every = step(end - begin, inner.width / 70, true);
    const y = inner.top + inner.height;
    ctx.fillStyle = colours.colour('muted');
    ctx.strokeStyle = colours.colour('line');
    ctx.textAlign = 'center';
    ctx.textBaseline = 'top';
    ctx.beginPath();
    for (let t = Math.ceil(begin / every - 1e-9) * every; t <= end + 1e-9; t += every) {
      const x = Math.round(inner.left + ((t - begin) / (end - begin)) * inner.width) + 0.5;
      ctx.moveTo(x, y);
      ctx.lineTo(x, y + 4);
      const label = text.moment(t, every) + (t < 600 ? ' s' : '');
      if (x + ctx.measureText(label).width / 2 < inner.left + inner.width + 12) {
        ctx.fillText(label, x, y + 6);
      }
    }
    ctx.stroke();
  }

  // Horizontal lines at shares of the height, with labels left of the area.
  function drawShareAxis(ctx, inner, labels) {
    ctx.fillStyle = colours.colour('muted');
    ctx.strokeStyle = colours.colour('grid');
    ctx.textAlign = 'right';
    ctx.textBaseline = 'middle';
    ctx.beginPath();
    for (const [share, label] of labels) {
      const y = Math.round(inner.top + inner.height * (1 - share)) + 0.5;
      ctx.moveTo(inner.left, y);
      ctx.lineTo(inner.left + inner.width, y);
      ctx.fillText(label, inner.left - 6, y);
    }
    ctx.stroke();
  }

  // The selected interval, if it is not the present.
  function drawCursor(ctx, inner) {
    const {kind, begin, until} = run.selected();
    if (kind !== 'interval') return;
    const x = inner.x(begin);
    const width = Math.max(2, inner.x(until) - x);
    ctx.strokeStyle = colours.colour('cursor');
    ctx.lineWidth = 1.5;
    ctx.strokeRect(x - 0.75, inner.top - 2, width + 1.5, inner.height + 4);
    ctx.lineWidth = 1;
  }

  // Selects the interval under the pointer, also while it drags.
  function selectByPointer(canvas, innerOf) {
    const selectAt = (event) => {
      const inner = innerOf();
      if (!run.state || !inner) return;
      const seconds = inner.seconds(event.clientX - canvas.getBoundingClientRect().left);
      Leeway.header.selectSeconds(Math.min(Math.max(0, seconds), inner.end - 1e-9));
    };
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button === 0) selectAt(event);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (event.buttons & 1) selectAt(event);
    });
    canvas.classList.add('selectable');
  }

  Leeway.timeline = {area, step, drawTimeAxis, drawShareAxis, drawCursor, selectByPointer};
})(globalThis.Leeway ??= {});
