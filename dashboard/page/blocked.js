// View 3: the actors that wait (left) and the actors and causes that they wait for (right). The
// width of a ribbon is the waiting time; a dashed outline marks a pull that is parked now.
(function (Leeway) {
  'use strict';

  const {text, colours, run, cards} = Leeway;
  const {element} = cards;
  const maxWaiting = 9;
  const maxCauses = 7;
  const maxChips = 6;

  function svg(tag, attributes) {
    const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  }

  function setup(view) {
    view.graph = svg('svg', {role: 'img', 'aria-label': view.title});
    view.plot = element('div', {class: 'plot graph'}, view.graph);
    view.section.append(view.plot);
    // The graph has the sentence of the view as its text, as canvases do.
    view.canvases.push(view.graph);
    view.chips = element('ul', {class: 'chips', 'aria-label': 'Pulls parked now'});
    view.section.append(view.chips);
    view.plot.resized = () => cards.mark(view, true);
  }

  // [row, cause, seconds] of the selected time, as indexes.
  function edges() {
    const causes = run.state.cause_names.length;
    return [...run.sums().byEdge].map(([key, seconds]) => [Math.floor(key / causes), key % causes,
                                                           seconds]);
  }

  // The `limit` indexes with the longest waits, in the order of their numbers so that names keep
  // their places, and -1 for all others.
  function grouped(list, at, limit) {
    const sums = new Map();
    for (const edge of list) sums.set(edge[at], (sums.get(edge[at]) ?? 0) + edge[2]);
    const byTime = [...sums].sort((a, b) => b[1] - a[1]).map(([index]) => index);
    const isCut = byTime.length > limit;
    const kept = byTime.slice(0, isCut ? limit - 1 : limit).sort((a, b) => a - b);
    const known = new Set(kept);
    return {order: isCut ? [...kept, -1] : kept, others: byTime.length - kept.length,
            of: (index) => (known.has(index) ? index : -1)};
  }

  function merged(list) {
    const left = grouped(list, 0, maxWaiting);
    const right = grouped(list, 1, maxCauses);
    const sums = new Map();
    for (const [row, cause, seconds] of list) {
      const key = `${left.of(row)} ${right.of(cause)}`;
      sums.set(key, (sums.get(key) ?? 0) + seconds);
    }
    const links = [...sums].map(([key, seconds]) => [...key.split(' ').map(Number), seconds]);
    return {left, right, links};
  }

  function actorName(row, left) {
    return row < 0 ? `${text.count(left.others)} other rows` : run.rowName(row);
  }

  function reasonName(cause, right) {
    return cause < 0 ? `${text.count(right.others)} other causes` : run.causeName(cause);
  }

  function paint(cause) {
    const colour = cause < 0 ? '' : colours.causeColour(run.causeName(cause));
    return `var(--${colour || colours.otherCauses()})`;
  }

  function draw(view) {
    const list = edges();
    const selected = run.selected();
    const now = selected.kind === 'now' ? run.state.blocked : [];
    cards.say(view, sentence(list, now));
    layOut(view, merged(list), now);
    view.chips.replaceChildren(...now.slice(0, maxChips).map((b) => element('li', {},
      `${text.brief(b.actor)} → ${text.brief(b.on)}, ${text.seconds(b.seconds)}`)));
  }

  function sentence(list, now) {
    const stated = run.sentenceOfNow('blocked');
    if (stated) return stated;
    const [first] = list.slice().sort((a, b) => b[2] - a[2]);
    if (!first || first[2] <= 0) return `No worker waits${run.selectedPhrase()}.`;
    const parked = now.length ? ` ${text.plural(now.length, 'pull')} parked now.` : '';
    return `Longest wait${run.selectedPhrase()}: ${text.brief(run.rowName(first[0]))} for ` +
      `${text.brief(run.causeName(first[1]))}, ${text.seconds(first[2])}.${parked}`;
  }

  // Places the bars of one side; the height of a bar is its share of all seconds.
  function place(order, links, at, height, total) {
    const gap = Math.min(14, height / Math.max(1, order.length) / 2.2);
    const free = height - gap * (order.length - 1);
    const nodes = new Map();
    let y = 0;
    for (const index of order) {
      const seconds = links.reduce((sum, link) => sum + (link[at] === index ? link[2] : 0), 0);
      const size = Math.max(1.5, (seconds / total) * free);
      nodes.set(index, {y, size, seconds, used: 0, scale: seconds ? size / seconds : 0});
      y += size + gap;
    }
    return nodes;
  }

  function layOut(view, {left, right, links}, now) {
    const {graph, plot} = view;
    const {width, height} = cards.sizeOf(plot);
    graph.setAttribute('viewBox', `0 0 ${width} ${height}`);
    const total = links.reduce((sum, link) => sum + link[2], 0);
    const parts = [];
    if (total > 0) {
      const side = Math.min(168, width * 0.36);
      const from = place(left.order, links, 0, height - 26, total);
      const to = place(right.order, links, 1, height - 26, total);
      const parkedNow = new Set(now.map((b) => `${b.actor}\n${b.on}`));
      const last = (index) => (index < 0 ? Infinity : index);
      links.sort((a, b) => last(a[0]) - last(b[0]) || last(a[1]) - last(b[1]) || 0);
      for (const [row, cause, seconds] of links) {
        const names = [actorName(row, left), reasonName(cause, right)];
        const path = ribbon(seconds, from.get(row), to.get(cause), side, width - side, names);
        path.style.fill = paint(cause);
        if (parkedNow.has(names.join('\n'))) path.classList.add('now');
        parts.push(path);
      }
      parts.push(...labels(from, side, true, side, (row) => actorName(row, left)),
                 ...labels(to, width - side, false, side, (cause) => reasonName(cause, right)));
      parts.push(caption(side - 8, 'end', 'waits'), caption(width - side + 8, 'start', 'for'));
    } else {
      const none = svg('text', {x: width / 2, y: height / 2, class: 'none',
                                'text-anchor': 'middle'});
      none.textContent = 'No waiting in this time';
      parts.push(none);
    }
    graph.replaceChildren(...parts);
  }

  function ribbon(seconds, from, to, x0, x1, [actor, cause]) {
    const a = from.y + from.used + 22;
    const b = to.y + to.used + 22;
    const thickA = seconds * from.scale;
    const thickB = seconds * to.scale;
    from.used += thickA;
    to.used += thickB;
    const middle = (x0 + x1) / 2;
    const path = svg('path', {
      d: `M${x0 + 5},${a} C${middle},${a} ${middle},${b} ${x1 - 5},${b} V${b + thickB} ` +
         `C${middle},${b + thickB} ${middle},${a + thickA} ${x0 + 5},${a + thickA} Z`,
      class: 'ribbon',
    });
    const title = svg('title', {});
    title.textContent = `${actor} waits ${text.seconds(seconds)} for ${cause}`;
    path.append(title);
    return path;
  }

  // Names beside the bars. Names of small bars move down so that none overlap.
  function labels(nodes, x, isLeft, side, nameOf) {
    const parts = [];
    // About 7.2 pixels a character.
    const room = Math.floor((side - 10) / 7.2);
    let free = 0;
    const last = [...nodes.values()].reduce((sum, n) => Math.max(sum, n.y + n.size), 0) + 22;
    for (const [index, node] of nodes) {
      const bar = svg('rect', {x: isLeft ? x : x - 5, y: node.y + 22, width: 5,
                               height: node.size, rx: 1.5, class: 'bar-end'});
      if (!isLeft) bar.style.fill = paint(index);
      const y = Math.max(node.y + node.size / 2 + 26, free);
      free = y + 13;
      const label = svg('text', {x: isLeft ? x - 8 : x + 8, y,
                                 'text-anchor': isLeft ? 'end' : 'start'});
      const name = nameOf(index);
      const seconds = text.seconds(node.seconds);
      const hasTime = room - seconds.length > Math.min(14, name.length);
      label.textContent = text.ends(name, hasTime ? room - seconds.length - 1 : room);
      if (hasTime) {
        const time = svg('tspan', {class: 'seconds'});
        time.textContent = ` ${seconds}`;
        label.append(time);
      }
      parts.push(bar);
      if (y <= last + 14) parts.push(label);
    }
    return parts;
  }

  function caption(x, anchor, content) {
    const node = svg('text', {x, y: 11, 'text-anchor': anchor, class: 'caption'});
    node.textContent = content;
    return node;
  }

  // The pulls that are parked now, then the longest waits of the selected time.
  function table() {
    const isNow = run.selected().kind === 'now';
    const parked = (isNow ? run.state.blocked : []).slice(0, 8).map((b) => [
      `${text.brief(b.actor, 40)} (parked now)`, text.brief(b.on, 40), text.seconds(b.seconds)]);
    const rows = edges().sort((a, b) => b[2] - a[2]).slice(0, 12)
      .map(([row, cause, seconds]) => [text.brief(run.rowName(row), 40),
                                       text.brief(run.causeName(cause), 40),
                                       text.seconds(seconds)]);
    return {head: [`Waits, ${run.selectedText()}`, 'For', 'Worker-seconds'],
            rows: [...parked, ...rows]};
  }

  Leeway.views.push({id: 'blocked', needsEvents: true, title: 'Blocked on', setup, draw, table,
                     keys: ['intervals', 'width', 'blocked', 'sentences', 'ended', 'causes']});
})(globalThis.Leeway ??= {});
