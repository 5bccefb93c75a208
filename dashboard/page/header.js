// The header: name, settings, connection, selected time, theme and the stop button; the figures.
(function (Leeway) {
  'use strict';

  const {text, colours, run, cards, timeline} = Leeway;
  const {element} = cards;
  const node = (id) => document.getElementById(id);
  let titleAt = 0;

  function start() {
    node('scrub').addEventListener('input', (event) => {
      const index = Number(event.target.value);
      if (index >= run.state.intervals.length - 1) selectNow();
      else select((index + 0.5) * run.state.width);
    });
    node('select-now').addEventListener('click', selectNow);
    node('select-all').addEventListener('click', () => select('all'));
    node('theme').addEventListener('click', () => {
      colours.toggleTheme();
      labelTheme();
      Leeway.charts.repaint();
      cards.changed(new Set(['theme', 'run']));
      if (run.state) drawOverview();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      colours.forgetColours();
      labelTheme();
      Leeway.charts.repaint();
      cards.changed(new Set(['theme', 'run']));
      if (run.state) drawOverview();
    });
    node('stop').addEventListener('click', () => node('confirm').showModal());
    node('confirm').addEventListener('close', () => {
      if (node('confirm').returnValue === 'stop') Leeway.stop();
      node('confirm').returnValue = '';
    });
    node('overview').parentNode.resized = () => { if (run.state) drawOverview(); };
    labelTheme();
  }

  function labelTheme() {
    const other = colours.isDark() ? 'light' : 'dark';
    cards.setText(node('theme'), `${text.capital(other)} theme`);
  }

  function selectNow() {
    select(run.state.ended ? 'all' : 'now');
  }

  function selectSeconds(seconds) {
    select((run.indexAt(seconds) + 0.5) * run.state.width);
  }

  function select(selection) {
    run.select(selection);
    const scrub = node('scrub');
    drawSelection();
    scrub.setAttribute('aria-valuetext', run.selectedText());
    cards.changed(new Set(['selection']));
  }

  function connection(kind, content) {
    const place = node('connection');
    cards.setText(place, content);
    place.dataset.kind = kind;
  }

  // Draws what the changed keys show. Runs at most once per frame.
  function draw(keys) {
    const {state} = run;
    node('waiting').hidden = true;
    if (keys.has('run')) drawFacts();
    if (keys.has('ended') || keys.has('run')) {
      node('select-now').hidden = Boolean(state.ended);
      node('stop').hidden = !state.run.can_stop || Boolean(state.ended) || Leeway.isFile;
    }
    // A run that was recorded without events has no intervals.
    node('scrub').closest('.scrubber').hidden = !state.run.has_events;
    drawFigures();
    drawLosses();
    drawSelection();
    if (state.run.has_events) drawOverview();
    if (performance.now() > titleAt + 1000) {
      titleAt = performance.now();
      document.title = `${text.brief(state.run.name, 40)} – ` +
        `${state.ended ? 'ended' : text.seconds(state.now)} – Leeway`;
    }
  }

  function drawFacts() {
    const {run: facts} = run.state;
    cards.setText(node('name'), text.brief(facts.name, 120));
    const pipelines = facts.stages > 1
      ? [`${text.plural(facts.pipelines, 'pipeline')} of ${text.plural(facts.stages, 'stage')}`]
      : [];
    const list = [facts.kind, facts.policy, text.plural(facts.workers, 'worker'), ...pipelines,
                  text.plural(facts.shards, 'shard'), `batch ${text.count(facts.batch)}`];
    node('facts').replaceChildren(...list.map((fact) => element('li', {}, text.brief(fact, 40))));
    const checkers = facts.checkers ? text.capital(facts.checkers) : 'No checkers';
    cards.setText(node('provenance'), `Seed ${facts.seed}. ${checkers}.` +
      (facts.has_events ? '' : ' The run was recorded without --trace: only curves, totals and ' +
                               'causes are known.'));
  }

  function figures() {
    const {totals, train, test, run: facts, now} = run.state;
    const list = [
      ['time', facts.kind === 'simulation' ? 'Virtual time' : 'Time', text.seconds(now), ''],
      ['samples', 'Samples', text.count(totals.samples), `epoch ${text.count(totals.epoch)}`],
      ['rate', 'Samples/s', text.count(Math.round(totals.samples_per_second)),
       run.state.ended ? 'whole run' : 'last seconds'],
    ];
    const all = totals.compute + totals.wait;
    const loss = test.at(-1) ?? train.at(-1);
    if (facts.has_losses) {
      const point = train.at(-1);
      list.push(['loss', 'Train loss', point ? text.number(point[2], 4) : '–',
                 test.length ? `test ${text.number(test.at(-1)[2], 4)}` : '']);
    }
    if (facts.has_accuracy) {
      list.push(['accuracy', test.length ? 'Test accuracy' : 'Train accuracy',
                 loss ? text.share(loss[3], 2) : '–', '']);
    }
    list.push(
      ['wait', 'Waiting', text.share(all ? totals.wait / all : 0), 'of worker time'],
      gapFigure(),
      ['parked', 'Parked pulls', text.count(totals.parked_pulls),
       `${text.count(totals.parked_now)} now`],
      ['live', 'Live workers', text.count(totals.live_workers),
       `of ${text.count(facts.workers)}${run.state.ended ? ', at the end' : ''}`]);
    return list;
  }

  // The gap now; of a run that has ended, the largest one.
  function gapFigure() {
    const {totals, bound, ended} = run.state;
    const limit = bound === null ? 'no bound' : `at most ${text.count(bound + 1)}`;
    const largest = text.count(totals.max_clock_gap);
    if (ended) return ['gap', 'Largest clock gap', largest, limit];
    return ['gap', 'Clock gap', text.count(totals.clock_gap), `largest ${largest}, ${limit}`];
  }

  function drawFigures() {
    const list = figures();
    const box = node('figures');
    while (box.children.length > list.length) box.lastChild.remove();
    list.forEach(([id, name, value, note], i) => {
      let tile = box.children[i];
      if (!tile) {
        tile = element('div', {}, element('dt', {}), element('dd', {class: 'value'}),
                       element('dd', {class: 'note'}));
        box.append(tile);
      }
      tile.dataset.figure = id;
      [name, value, note].forEach((content, k) => cards.setText(tile.children[k], content));
    });
  }

  // Views that count events show too little if some were lost.
  function drawLosses() {
    const lost = run.state.totals.lost_events;
    const note = node('incomplete');
    if (note.hidden === Boolean(lost)) note.hidden = !lost;
    cards.setText(note, lost ? `The page lacks ${text.plural(lost, 'event')}, which came faster ` +
      'than it could count them. Views of workers and intervals show too little.' : '');
  }

  function drawSelection() {
    const selected = run.selected();
    const scrub = node('scrub');
    const last = Math.max(0, run.state.intervals.length - 1);
    if (Number(scrub.max) !== last) scrub.max = String(last);
    const value = selected.kind === 'interval' ? selected.first : last;
    if (Number(scrub.value) !== value) scrub.value = String(value);
    cards.setAttribute(node('select-now'), 'aria-pressed', String(selected.kind === 'now'));
    cards.setAttribute(node('select-all'), 'aria-pressed', String(selected.kind === 'all'));
    cards.setText(node('selected'), text.capital(run.selectedText()));
  }

  // The share of waiting in each interval, and marks, behind the scrubber.
  function drawOverview() {
    const {intervals, width, marks} = run.state;
    const {ctx, width: w, height: h} = cards.context(node('overview'));
    const inner = timeline.area(w, h, {left: 8, right: 8, top: 0, bottom: 0});
    ctx.fillStyle = colours.colour('empty');
    ctx.fillRect(inner.left, 0, inner.width, h);
    ctx.fillStyle = colours.colour('overview');
    intervals.forEach((interval, i) => {
      const waits = run.waitsOf(interval).total;
      const share = waits / (waits + interval.compute || 1);
      const left = inner.x(i * width);
      ctx.fillRect(left, h - share * h, inner.x((i + 1) * width) - left + 0.3, share * h);
    });
    for (const mark of marks) {
      if (mark.kind === 'checkpoint' || mark.kind === 'end') continue;
      ctx.fillStyle = Leeway.charts.markColour(mark.kind);
      ctx.fillRect(inner.x(mark.seconds) - 1, 0, 2, h);
    }
    const {kind, begin, until} = run.selected();
    if (kind === 'all') return;
    ctx.fillStyle = colours.colour('cursor');
    ctx.fillRect(inner.x(begin), h - 3, Math.max(3, inner.x(until) - inner.x(begin)), 3);
  }

  Leeway.header = {start, draw, connection, selectSeconds};
})(globalThis.Leeway ??= {});
