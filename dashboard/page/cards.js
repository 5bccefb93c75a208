// Cards: one for each view, with heading, sentence, controls, canvases and a table. Draws at most
// once per frame, and only cards whose part of the state has changed.
(function (Leeway) {
  'use strict';

  const {run} = Leeway;
  const views = [];
  const urgentKeys = ['selection', 'theme', 'size', 'control'];
  // A view that took c ms to draw is drawn again after 8c ms at the earliest, which limits the
  // page to about a tenth of a core. Input is drawn in the next frame.
  const restFactor = 8;
  // Milliseconds between drawings of a view outside the window, whose text remains readable.
  const restOutside = 1000;
  let frame = 0;
  let timer = 0;

  function element(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  function setAttribute(node, name, value) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }

  // Defines the view of a section: {id, title, keys, setup(view), draw(view), table(view)}.
  function define(definition) {
    const section = document.getElementById(definition.id);
    const heading = element('h2', {id: `${definition.id}-title`}, definition.title);
    const controls = element('div', {class: 'controls'});
    const sentence = element('p', {class: 'sentence'});
    const view = {...definition, section, controls, canvases: [], sentenceNode: sentence,
                  sentence: '', dirty: true, urgent: true, visible: true, cost: 0, drawn: 0,
                  tableDrawn: 0, keys: new Set([...definition.keys, ...urgentKeys])};
    section.setAttribute('aria-labelledby', heading.id);
    section.append(element('div', {class: 'head'}, heading, controls), sentence);
    definition.setup(view);
    if (definition.table) addTable(view);
    views.push(view);
    visibility.observe(section);
    return view;
  }

  function addTable(view) {
    view.details = element('details', {}, element('summary', {}, view.summary ?? 'Table'));
    view.tableBox = element('div', {class: 'scroll', tabindex: '0', role: 'region',
                                    'aria-label': `Table: ${view.title}`});
    view.details.append(view.tableBox);
    view.details.addEventListener('toggle', () => {
      view.tableDrawn = 0;
      mark(view, true);
    });
    view.section.append(view.details);
  }

  // The cells of a column other than the first are numbers.
  function fillTable(box, {head, rows}) {
    const cells = (row, tag) => row.map((cell, i) => {
      const node = element(i === 0 && tag === 'td' ? 'th' : tag, i === 0 ? {} : {class: 'n'});
      if (i === 0 && tag === 'td') node.setAttribute('scope', 'row');
      node.append(cell instanceof Node ? cell : String(cell));
      return node;
    });
    const table = element('table', {},
      element('thead', {}, element('tr', {}, ...cells(head, 'th'))),
      element('tbody', {}, ...rows.map((row) => element('tr', {}, ...cells(row, 'td')))));
    box.replaceChildren(table);
  }

  // A canvas of the view, redrawn when its size changes. `purpose` distinguishes it from the first.
  function addCanvas(view, height, purpose = '') {
    const canvas = element('canvas', {role: 'img', 'aria-label': view.title});
    const plot = element('div', {class: 'plot'}, canvas);
    // Plots grow to fill their card, up to a limit.
    setHeight(canvas, height);
    view.section.append(plot);
    canvas.purpose = purpose;
    view.canvases.push(canvas);
    sizes.observe(plot);
    plot.resized = () => mark(view, true);
    return canvas;
  }

  function setHeight(canvas, height) {
    const value = `${Math.round(height)}px`;
    const {style} = canvas.parentNode;
    if (style.minHeight === value) return;
    style.minHeight = value;
    style.maxHeight = `${Math.round(2 * height)}px`;
  }

  // The size of an element, measured when it changes: reading it in each frame forces a layout.
  const measured = new WeakMap();

  function sizeOf(node) {
    let size = measured.get(node);
    if (!size) {
      size = {width: node.clientWidth, height: node.clientHeight};
      measured.set(node, size);
      sizes.observe(node);
    }
    return size;
  }

  // The 2d context of a canvas, cleared, in CSS pixels; with the canvas's width and height.
  function context(canvas) {
    const {width, height} = sizeOf(canvas.parentNode);
    const ratio = Math.min(3, devicePixelRatio || 1);
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const ctx = canvas.getContext('2d');
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = '11px system-ui, sans-serif';
    return {ctx, width, height, ratio};
  }

  // The sentence of a view is also the text of its canvases for screen readers.
  function say(view, sentence) {
    view.sentence = sentence;
    setText(view.sentenceNode, sentence);
    for (const canvas of view.canvases) {
      setAttribute(canvas, 'aria-label', canvas.purpose ? `${canvas.purpose}. ${sentence}`
                                                        : sentence || view.title);
    }
  }

  function hide(view, hidden) {
    if (view.section.hidden !== hidden) view.section.hidden = hidden;
  }

  // Buttons of which one is pressed; calls `choose` with its value.
  function addChoice(view, label, options, choose) {
    const group = element('div', {class: 'choice', role: 'group', 'aria-label': label});
    options.forEach(([value, text], i) => {
      const button = element('button', {type: 'button', 'aria-pressed': String(i === 0)}, text);
      button.addEventListener('click', () => {
        for (const other of group.children) {
          other.setAttribute('aria-pressed', String(other === button));
        }
        choose(value);
        mark(view, true);
      });
      group.append(button);
    });
    view.controls.append(group);
    return group;
  }

  // A legend: [colour of page.css or '', text, kind of the key]; kinds: box, line, dot, dash, tick.
  function addLegend(view, entries) {
    const list = element('ul', {class: 'legend'});
    for (const [colour, text, kind] of entries) {
      const key = element('span', {class: `key ${kind ?? 'box'}`, 'aria-hidden': 'true'});
      key.style.setProperty('--key', `var(--${colour})`);
      list.append(element('li', {}, key, text));
    }
    view.section.append(list);
    return list;
  }

  function mark(view, urgent) {
    view.dirty = true;
    view.urgent ||= urgent;
    requestFrame();
  }

  function requestFrame() {
    if (!frame) frame = requestAnimationFrame(drawFrame);
  }

  // Marks the views that show one of the changed keys.
  function changed(keys) {
    const urgent = urgentKeys.some((key) => keys.has(key));
    for (const view of views) {
      for (const key of keys) {
        if (view.keys.has(key)) {
          mark(view, urgent);
          break;
        }
      }
    }
  }

  function drawFrame() {
    frame = 0;
    if (!run.state) return;
    let next = Infinity;
    for (const view of views) {
      if (!view.dirty) continue;
      const begin = performance.now();
      const rest = view.visible ? restFactor * view.cost : restOutside;
      if ((!view.urgent || !view.visible) && view.drawn && begin < view.drawn + rest) {
        next = Math.min(next, view.drawn + rest - begin);
        continue;
      }
      view.dirty = view.urgent = false;
      draw(view, begin);
    }
    clearTimeout(timer);
    // A timer, because asking for each frame until then would make the browser render them all.
    if (next < Infinity) timer = setTimeout(requestFrame, next);
  }

  function draw(view, begin) {
    try {
      const hasEvents = run.state.run.has_events;
      view.section.parentNode.classList.toggle('no-events', !hasEvents);
      view.section.classList.toggle('needs-events', Boolean(view.needsEvents));
      if (view.needsEvents && !hasEvents) {
        say(view, 'Unknown: the run was recorded without --trace.');
        return;
      }
      view.draw(view);
      // The table changes at most once a second, so that it can be read.
      if (view.details?.open && begin > view.tableDrawn + 1000) {
        view.tableDrawn = begin;
        fillTable(view.tableBox, view.table(view));
      }
    } catch (error) {
      console.error(`view ${view.id}:`, error);
    }
    view.drawn = performance.now();
    // A mean, so that one slow frame does not stop the view.
    view.cost = 0.8 * view.cost + 0.2 * (view.drawn - begin);
  }

  const visibility = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const view = views.find((v) => v.section === entry.target);
      view.visible = entry.isIntersecting;
      if (view.visible && view.dirty) mark(view, true);
    }
  }, {rootMargin: '200px'});

  const sizes = new ResizeObserver((entries) => {
    for (const {target} of entries) {
      if (measured.has(target)) {
        measured.set(target, {width: target.clientWidth, height: target.clientHeight});
      }
      target.resized?.();
    }
  });

  // The tip at the pointer; null hides it.
  function showTip(lines, x, y) {
    const tip = document.getElementById('tip');
    tip.hidden = !lines;
    if (!lines) return;
    tip.replaceChildren(...lines.map((line) => element('div', {}, line)));
    const left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
    const top = y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18;
    tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }

  // Shows `describe(x, y)`, an array of lines or null, while the pointer is over the canvas.
  function addTip(canvas, describe) {
    canvas.addEventListener('pointermove', (event) => {
      const box = canvas.getBoundingClientRect();
      showTip(run.state && describe(event.clientX - box.left, event.clientY - box.top),
              event.clientX, event.clientY);
    });
    canvas.addEventListener('pointerleave', () => showTip(null));
  }

  Leeway.cards = {define, element, setText, setAttribute, addCanvas, setHeight, sizeOf, context,
                  say, hide, addChoice, addLegend, fillTable, mark, changed, addTip};
})(globalThis.Leeway ??= {});
