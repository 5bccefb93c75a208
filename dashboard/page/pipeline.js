// View 7: the operations of pipelines as a Gantt strip, and the slowness of each pipeline's stages.
(function (Leeway) {
  'use strict';

  const {text, colours, run, cards, timeline} = Leeway;
  const {element} = cards;
  const kinds = [['forward', 'forward'], ['backward', 'backward'],
                 ['weights', 'backward of weights']];
  const maxRows = 16;

  function setup(view) {
    view.span = 1;
    view.first = 0;
    view.pick = element('select', {'aria-label': 'Pipelines'});
    view.pick.addEventListener('change', () => {
      view.first = Number(view.pick.value);
      cards.mark(view, true);
    });
    view.controls.append(view.pick);
    cards.addChoice(view, 'Zoom of the strip', [[1, '1×'], [0.5, '2×'], [0.25, '4×']],
                    (span) => { view.span = span; });
    view.caption = element('p', {class: 'caption'});
    view.section.append(view.caption);
    const split = element('div', {class: 'split'});
    view.gantt = cards.addCanvas(view, 240, 'Operations of the stages over time');
    view.map = cards.addCanvas(view, 240, 'Slowness by pipeline and stage');
    view.gantt.parentNode.classList.add('grow');
    view.map.parentNode.classList.add('side');
    split.append(view.gantt.parentNode, view.map.parentNode);
    view.section.append(split);
    cards.addTip(view.gantt, (x, y) => ganttTip(view, x, y));
    cards.addTip(view.map, (x, y) => mapTip(view, x, y));
    cards.addLegend(view, [...kinds.map(([colour, name]) => [colour, name]),
                           ['slow-high', 'slower than the median of the stage']]);
  }

  function draw(view) {
    const {pipeline} = run.state;
    cards.hide(view, !pipeline);
    if (!pipeline) return;
    cards.say(view, sentence());
    fillPick(view);
    drawGantt(view, pipeline.operations);
    drawMap(view, pipeline.slowness);
  }

  function sentence() {
    const {sentences} = run.state;
    return sentences.pipeline || 'No stage is slow.';
  }

  // Worker w is stage w % stages of pipeline w / stages.
  function shownWorkers(view) {
    const {workers, stages} = run.state.run;
    const pipelines = Math.max(1, Math.floor(maxRows / stages));
    const first = view.first * stages;
    return {first, count: Math.max(0, Math.min(workers - first, pipelines * stages)), pipelines};
  }

  function fillPick(view) {
    const {pipelines} = run.state.run;
    const step = shownWorkers(view).pipelines;
    const wanted = Math.ceil(pipelines / step);
    view.pick.hidden = wanted <= 1;
    if (view.pick.options.length === wanted) return;
    view.pick.replaceChildren(...Array.from({length: wanted}, (_, i) => {
      const last = Math.min(pipelines, (i + 1) * step) - 1;
      return element('option', {value: String(i * step)},
        last === i * step ? `pipeline ${last}` : `pipelines ${i * step}–${last}`);
    }));
  }

  // The shown seconds: the latest iterations, or those at the selected interval.
  function ganttWindow(view, operations) {
    const {kind, begin, until} = run.selected();
    const oldest = operations[0][5];
    const newest = operations.reduce((end, op) => Math.max(end, op[6]), 0);
    const last = operations.at(-1)[4];
    const recent = operations.filter((op) => op[4] >= last - 1);
    const length = view.span * Math.max(1e-6, newest - Math.min(...recent.map((op) => op[5])));
    if (kind !== 'interval') return {from: newest - length, to: newest, kept: true};
    const middle = (begin + until) / 2;
    const from = Math.max(0, middle - length / 2);
    const needed = run.state.run.keeps_operations ? from : middle;
    return {from, to: from + length, kept: needed >= oldest && middle <= newest + length};
  }

  // The operations of the shown time: of the state, or asked for from the server, which reads them
  // from the events of a recorded run. Null: not known; the caption says why.
  function operationsOf(view, shown, kept) {
    if (shown.kept) return kept;
    if (!run.state.run.keeps_operations || Leeway.isFile) {
      cards.setText(view.caption, `Operations of ${run.selectedText()} are not in this page` +
        (run.state.ended && !Leeway.isFile ? '.' : '; leeway view RUN shows those of any time.'));
      return null;
    }
    const {first, count} = shownWorkers(view);
    const {loaded} = view;
    if (loaded?.first === first && loaded.from <= shown.from && loaded.until >= shown.to) {
      if (loaded.error) cards.setText(view.caption, `No operations: ${loaded.error}.`);
      return loaded.operations;
    }
    cards.setText(view.caption, 'Reading the operations of this time.');
    if (!view.loads) load(view, shown, first, count);
    return null;
  }

  async function load(view, {from, to}, first, count) {
    view.loads = true;
    // The neighbouring time as well, so that a small step needs no further answer.
    const margin = to - from;
    const span = {from: from - margin, until: to + margin, first};
    view.loaded = {...span, operations: null};
    try {
      const answer = await fetch(Leeway.address('operations', {...span, workers: count}));
      if (!answer.ok) throw new Error((await answer.text()).trim() || `code ${answer.status}`);
      view.loaded.operations = await answer.json();
    } catch (error) {
      view.loaded.error = error.message;
    }
    view.loads = false;
    cards.mark(view, true);
  }

  function drawGantt(view, kept) {
    const {first, count} = shownWorkers(view);
    cards.setHeight(view.gantt, Math.max(120, count * 24 + 26));
    const {ctx, width, height} = cards.context(view.gantt);
    view.shown = null;
    if (!kept.length) {
      cards.setText(view.caption, 'No operation is recorded.');
      return;
    }
    const shown = ganttWindow(view, kept);
    const operations = operationsOf(view, shown, kept);
    if (!operations) return;
    cards.setText(view.caption,
      `Operations, ${text.span(shown.from, shown.to, (shown.to - shown.from) / 100)}. ` +
      'Numbers are micro-batches.');
    const left = width < 420 ? 62 : 92;
    const inner = {left, top: 4, width: width - left - 8, height: height - 26};
    const rowHeight = inner.height / Math.max(1, count);
    const scale = inner.width / (shown.to - shown.from);
    view.shown = {...shown, operations, inner, rowHeight, first, count, scale};
    const {stages} = run.state.run;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, 0, inner.width, height);
    ctx.clip();
    ctx.textAlign = 'center';
    ctx.textBaseline = 'middle';
    for (let row = 0; row < count; row += 1) {
      ctx.fillStyle = colours.colour('empty');
      ctx.fillRect(left, inner.top + row * rowHeight + 1.5, inner.width, rowHeight - 3);
    }
    for (const [worker, kind, micro, , , begin, end] of operations) {
      const row = worker - first;
      if (row < 0 || row >= count || end < shown.from || begin > shown.to) continue;
      drawOperation(ctx, kind, micro, left + (begin - shown.from) * scale,
                    (end - begin) * scale, inner.top + row * rowHeight + 1.5, rowHeight - 3);
    }
    ctx.restore();
    drawRows(ctx, inner, rowHeight, first, count, stages);
    timeline.drawTimeAxis(ctx, inner, shown.from, shown.to);
  }

  function drawOperation(ctx, kind, micro, x, length, y, height) {
    const name = kinds[kind]?.[0] ?? 'muted';
    ctx.fillStyle = colours.colour(name);
    // Neighbouring micro-batches differ in brightness.
    ctx.globalAlpha = micro % 2 ? 0.78 : 1;
    ctx.fillRect(x, y, Math.max(0.6, length - (length > 4 ? 1 : 0)), height);
    ctx.globalAlpha = 1;
    if (length < 13 || height < 11) return;
    ctx.fillStyle = colours.ink(colours.rgb(name));
    ctx.fillText(String(micro), x + length / 2, y + height / 2);
  }

  function drawRows(ctx, inner, rowHeight, first, count, stages) {
    ctx.textAlign = 'right';
    ctx.textBaseline = 'middle';
    for (let row = 0; row < count; row += 1) {
      const y = inner.top + row * rowHeight;
      ctx.fillStyle = colours.colour('muted');
      const {rows, workers} = run.state.run;
      const name = rows.length === workers ? run.rowName(first + row) : `worker ${first + row}`;
      ctx.fillText(Leeway.fitText(ctx, name, inner.left - 10), inner.left - 6, y + rowHeight / 2);
      if (row && (first + row) % stages === 0) {
        ctx.fillStyle = colours.colour('muted');
        ctx.fillRect(4, Math.round(y) - 0.5, inner.left + inner.width - 4, 1);
      }
    }
  }

  function drawMap(view, slowness) {
    cards.setHeight(view.map, Math.min(300, Math.max(80, slowness.length * 56 + 26)));
    const {ctx, width, height} = cards.context(view.map);
    const stages = slowness[0]?.length ?? 0;
    if (!stages) return;
    const left = 66;
    const top = 20;
    const cellWidth = Math.min(84, (width - left - 4) / stages);
    const cellHeight = Math.min(56, (height - top - 4) / slowness.length);
    view.grid = {left, top, cellWidth, cellHeight};
    ctx.textBaseline = 'middle';
    slowness.forEach((row, pipeline) => row.forEach((ratio, stage) => {
      const rgb = colours.ofScale('slow', ratio - 1);
      const x = left + stage * cellWidth;
      const y = top + pipeline * cellHeight;
      ctx.fillStyle = colours.css(rgb);
      ctx.fillRect(x, y, cellWidth - 2, cellHeight - (cellHeight > 6 ? 2 : 0));
      if (cellHeight < 13 || cellWidth < 28) return;
      ctx.fillStyle = colours.ink(rgb);
      ctx.textAlign = 'center';
      ctx.fillText(`${ratio.toFixed(2)}×`, x + cellWidth / 2 - 1, y + cellHeight / 2);
    }));
    ctx.fillStyle = colours.colour('muted');
    ctx.textAlign = 'center';
    for (let stage = 0; stage < stages; stage += 1) {
      ctx.fillText(cellWidth > 44 ? `stage ${stage}` : String(stage),
                   left + (stage + 0.5) * cellWidth - 1, 9);
    }
    ctx.textAlign = 'right';
    const every = Math.ceil(13 / cellHeight);
    for (let pipeline = 0; pipeline < slowness.length; pipeline += every) {
      ctx.fillText(`pipeline ${pipeline}`, left - 6, top + (pipeline + 0.5) * cellHeight);
    }
  }

  function ganttTip(view, x, y) {
    const {shown} = view;
    if (!shown) return null;
    const worker = shown.first + Math.floor((y - shown.inner.top) / shown.rowHeight);
    const at = shown.from + (x - shown.inner.left) / shown.scale;
    const found = shown.operations.findLast((op) =>
      op[0] === worker && op[5] <= at && op[6] >= at);
    if (!found) return null;
    const [, kind, micro, chunk, iteration, begin, end] = found;
    return [`worker ${worker}: ${kinds[kind]?.[1] ?? kind}`,
            `iteration ${iteration}, micro-batch ${micro}, chunk ${chunk}`,
            text.seconds(end - begin)];
  }

  function mapTip(view, x, y) {
    const {grid} = view;
    const pipeline = Math.floor((y - grid?.top) / grid?.cellHeight);
    const stage = Math.floor((x - grid?.left) / grid?.cellWidth);
    const ratio = run.state.pipeline?.slowness[pipeline]?.[stage];
    if (ratio === undefined) return null;
    const worker = pipeline * run.state.run.stages + stage;
    return [`pipeline ${pipeline}, stage ${stage} (worker ${worker})`,
            `${ratio.toFixed(2)}× the median of the stage`];
  }

  function table() {
    const slowness = run.state.pipeline?.slowness ?? [];
    const cells = slowness.flatMap((row, pipeline) => row.map((ratio, stage) => ({
      pipeline, stage, ratio})));
    cells.sort((a, b) => b.ratio - a.ratio);
    return {head: ['Pipeline', 'Stage', 'Time of an operation over the median of the stage'],
            rows: cells.slice(0, 20).map((c) => [String(c.pipeline), String(c.stage),
                                                 `${c.ratio.toFixed(2)}×`])};
  }

  Leeway.views.push({id: 'pipeline', title: 'Pipelines', setup, draw, table,
                     summary: 'Table of slowness',
                     keys: ['pipeline', 'sentences', 'run']});
})(globalThis.Leeway ??= {});
