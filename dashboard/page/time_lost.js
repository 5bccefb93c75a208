// View 1: the share of worker-seconds spent waiting, by culprit: a bar of the selected time, the
// share in each interval, and a table.
(function (Leeway) {
  'use strict';

  const {text, colours, run, cards, timeline} = Leeway;
  const {element} = cards;
  const maxSegments = 9;

  function setup(view) {
    view.bar = element('div', {class: 'bar', 'aria-hidden': 'true'});
    view.caption = element('p', {class: 'caption'});
    view.bar.resized = () => cards.mark(view, true);
    view.section.append(view.caption, view.bar);
    view.canvas = cards.addCanvas(view, 132, 'Share of worker time spent waiting, by interval');
    timeline.selectByPointer(view.canvas, () => view.inner);
    cards.addTip(view.canvas, (x, y) => tip(view, x, y));
    view.legend = element('div', {class: 'scroll', tabindex: '0', role: 'region',
                                  'aria-label': 'Longest waits'});
    view.section.append(view.legend);
  }

  // Seconds by colour, in the order of the stack: actors first, then other causes.
  function segments(causes) {
    const all = new Map();
    for (const [cause, seconds] of causes) {
      const name = run.causeName(cause);
      const colour = colours.causeColour(name) || colours.otherCauses();
      const entry = all.get(colour) ?? {colour, seconds: 0,
                                        name: colour === colours.otherCauses() ? 'other causes'
                                                                               : name};
      entry.seconds += seconds;
      all.set(colour, entry);
    }
    return [...all.values()];
  }

  function rank(colour) {
    const slot = /^cause-(\d)$/.exec(colour);
    return slot ? Number(slot[1]) : colour === colours.otherCauses() ? 7 : 8;
  }

  function draw(view) {
    const {state} = run;
    const selected = run.selected();
    const causes = run.selectedCauses();
    const whole = selected.kind === 'all';
    const sums = whole ? state.totals : run.sums();
    const all = sums.compute + sums.wait;
    cards.say(view, sentence(causes, all, selected));
    cards.setText(view.caption, `${text.capital(run.selectedText())}: ` +
      `${text.share(all ? sums.wait / all : 0)} of worker time is waiting ` +
      `(${text.seconds(sums.wait)} of ${text.seconds(all)}).`);
    const parts = segments(causes).sort((a, b) => b.seconds - a.seconds).slice(0, maxSegments);
    const named = parts.reduce((sum, part) => sum + part.seconds, 0);
    // The server lists the twelve longest causes of the whole run; the rest has no name.
    if (sums.wait - named > 1e-6 * all) addRest(parts, sums.wait - named);
    drawBar(view, parts, sums.compute, all);
    fillLegend(view, parts, all);
    drawHistory(view);
  }

  function addRest(parts, seconds) {
    const other = parts.find((part) => part.colour === colours.otherCauses());
    if (other) other.seconds += seconds;
    else parts.push({colour: colours.otherCauses(), name: 'other causes', seconds});
  }

  function sentence(causes, all, selected) {
    const {state} = run;
    if (selected.kind !== 'interval' && state.sentences.lost) return state.sentences.lost;
    const [first] = causes;
    if (!first || !all || first[1] <= 0) return `No worker waits${run.selectedPhrase()}.`;
    return `${text.share(first[1] / all)} of all time is lost waiting for ` +
      `${text.brief(run.causeName(first[0]))}${run.selectedPhrase()}.`;
  }

  function drawBar({bar}, parts, compute, all) {
    const {width} = cards.sizeOf(bar);
    const shown = all > 0 ? parts.filter((part) => part.seconds / all > 0.0005) : [];
    const wanted = shown.length + 1;
    while (bar.children.length > wanted) bar.lastChild.remove();
    while (bar.children.length < wanted) bar.append(element('span', {}));
    [...bar.children].forEach((node, i) => {
      const part = shown[i] ?? {colour: 'computing', name: 'computing', seconds: compute};
      const share = all > 0 ? part.seconds / all : 1;
      node.style.flexGrow = String(share);
      node.style.background = `var(--${part.colour})`;
      node.style.color = part.colour === 'computing' ? 'var(--muted)'
                                                     : colours.ink(colours.rgb(part.colour));
      // About 7.5 pixels a character.
      const room = all > 0 ? (share * width - 16) / 7.5 : 0;
      const label = `${text.brief(part.name)} ${text.share(share)}`;
      cards.setText(node, room >= label.length ? label : room >= 5 ? text.share(share) : '');
    });
  }

  function fillLegend(view, parts, all) {
    const rows = parts.slice(0, 6).map((part) => [keyed(part.colour, part.name),
      text.seconds(part.seconds), text.share(all ? part.seconds / all : 0)]);
    cards.fillTable(view.legend, {head: ['Waited for', 'Worker-seconds', 'Of all time'], rows});
  }

  function keyed(colour, name) {
    const key = element('span', {class: 'key box', 'aria-hidden': 'true'});
    key.style.setProperty('--key', `var(--${colour})`);
    return element('span', {class: 'named'}, key, text.brief(name, 40));
  }

  function stack(interval) {
    const waits = run.waitsOf(interval);
    const parts = segments(waits.byCause);
    return {parts: parts.sort((a, b) => rank(a.colour) - rank(b.colour)),
            all: waits.total + interval.compute};
  }

  function drawHistory(view) {
    const {intervals, width} = run.state;
    const {ctx, width: w, height: h} = cards.context(view.canvas);
    const inner = timeline.area(w, h);
    view.inner = inner;
    let top = 0.1;
    const stacks = intervals.map(stack);
    for (const {parts, all} of stacks) {
      if (!all) continue;
      top = Math.max(top, parts.reduce((sum, part) => sum + part.seconds, 0) / all);
    }
    top = Math.min(1, Math.ceil(top * 10 - 1e-9) / 10);
    timeline.drawShareAxis(ctx, inner, [0, 0.5, 1].map((s) => [s, text.share(s * top, 0)]));
    view.top = top;
    stacks.forEach(({parts, all}, i) => {
      if (!all) return;
      const left = inner.x(i * width);
      const right = inner.x((i + 1) * width);
      const gap = right - left > 5 ? 1 : 0;
      let base = 0;
      for (const part of parts) {
        const height = (part.seconds / all / top) * inner.height;
        ctx.fillStyle = colours.colour(part.colour);
        ctx.fillRect(left, inner.top + inner.height - base - height, right - left - gap + 0.3,
                     height);
        base += height;
      }
    });
    timeline.drawTimeAxis(ctx, inner);
    timeline.drawCursor(ctx, inner);
  }

  function tip(view, x) {
    const {intervals, width} = run.state;
    const index = Math.floor(view.inner?.seconds(x) / width);
    if (!(index in intervals)) return null;
    const {parts, all} = stack(intervals[index]);
    const lines = [text.span(index * width, (index + 1) * width, width / 2)];
    for (const part of [...parts].sort((a, b) => b.seconds - a.seconds).slice(0, 5)) {
      lines.push(`${text.brief(part.name)}: ${text.share(all ? part.seconds / all : 0)}`);
    }
    return lines;
  }

  function table() {
    const {state} = run;
    const all = state.totals.compute + state.totals.wait;
    const rows = state.causes.slice(0, 18).map((c) => [text.brief(run.causeName(c.cause), 40),
      c.kind, text.seconds(c.seconds), text.share(c.share)]);
    rows.push(['all waiting', '', text.seconds(state.totals.wait),
               text.share(all ? state.totals.wait / all : 0)]);
    return {head: ['Waited for, whole run', 'Kind', 'Worker-seconds', 'Of all time'], rows};
  }

  Leeway.views = Leeway.views ?? [];
  Leeway.views.push({id: 'lost', title: 'Time lost', setup, draw, table,
                     summary: 'Table of the whole run',
                     keys: ['intervals', 'width', 'causes', 'totals', 'sentences', 'ended']});
  Leeway.keyed = keyed;
})(globalThis.Leeway ??= {});
