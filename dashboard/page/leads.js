// View 4: pulls by their lead over the slowest worker, of all workers, by worker and by shard. The
// dashed line is the bound.
(function (Leeway) {
  'use strict';

  const {text, colours, run, cards, charts} = Leeway;
  const lastLead = 16;  // counts of this lead include all larger ones

  function setup(view) {
    view.by = 'all';
    cards.addChoice(view, 'Distributions', [['all', 'All'], ['row', 'By worker'],
                                            ['shard', 'By shard']], (by) => { view.by = by; });
    view.caption = cards.element('p', {class: 'caption'});
    view.section.append(view.caption);
    view.barCanvas = cards.addCanvas(view, 272);
    view.mapCanvas = cards.addCanvas(view, 272);
    cards.addTip(view.mapCanvas, (x, y) => tip(view, x, y));
    view.chart = charts.make(view, view.barCanvas, 'bar',
      [{data: [], barPercentage: 0.96, categoryPercentage: 0.96}],
      () => ({x: charts.axis({grid: {display: false}, title: titled('lead (iterations)')}),
              y: charts.axis({min: 0, ticks: {callback: (v) => text.short(v), maxTicksLimit: 6},
                              afterFit: (scale) => { scale.width = 44; }})}),
      {tooltip: {callbacks: {
        title: (items) => `lead ${items[0].label}`,
        label: (item) => `${text.plural(item.raw, 'pull')}, ${text.share(item.raw / view.total)}`,
      }}});
  }

  function titled(content) {
    return {display: true, text: content, color: colours.colour('muted'), font: {size: 11}};
  }

  function label(lead) {
    return lead >= lastLead ? `${lastLead}+` : String(lead);
  }

  // The number of leads that are worth showing: to the bound, and to the largest that occurred.
  function shownLeads(lists) {
    let largest = Math.min(lastLead, (run.state.bound ?? 0) + 1);
    for (const list of lists) {
      list.forEach((n, lead) => { if (n && lead > largest) largest = lead; });
    }
    return Math.max(2, largest + 1);
  }

  function draw(view) {
    const isAll = view.by === 'all';
    view.barCanvas.parentNode.hidden = !isAll;
    view.mapCanvas.parentNode.hidden = isAll;
    const leads = run.sums().leads;
    cards.say(view, sentence(leads));
    cards.setText(view.caption, isAll ? `Pulls by lead, ${run.selectedText()}.`
      : `Share of the pulls of each ${view.by === 'row' ? 'worker' : 'shard'}, whole run.`);
    if (isAll) drawBars(view, leads);
    else drawMap(view);
  }

  function drawBars(view, leads) {
    const {bound} = run.state;
    const shown = shownLeads([leads]);
    const end = Leeway.leadScaleEnd();
    const all = Array.from({length: shown}, (_, lead) => leads[lead] ?? 0);
    view.total = all.reduce((a, b) => a + b, 0) || 1;
    const {chart} = view;
    if (chart.data.labels.length !== shown) {
      chart.data.labels = all.map((_, lead) => label(lead));
    }
    chart.data.datasets[0].data = all;
    // The colours are those of the staleness map; the lightest steps would vanish as bars.
    chart.data.datasets[0].backgroundColor = all.map((_, lead) =>
      colours.css(colours.ofScale('lead', 0.25 + 0.75 * Math.min(1, lead / end))));
    // Between the bar of the bound and the next one.
    chart.bound = bound === null ? null
      : {at: Math.min(bound, shown - 1) + (bound < shown - 1 ? 0.5 : 0.46),
         label: `bound ${bound}`};
    chart.update('none');
  }

  function lists(view) {
    const {state} = run;
    return view.by === 'row' ? state.leads_by_row : state.leads_by_shard;
  }

  function nameOf(view, i) {
    return view.by === 'row' ? run.rowName(i) : `shard ${i}`;
  }

  // A row for each worker or shard; the colour is the share of its pulls.
  function drawMap(view) {
    const all = lists(view);
    const shown = shownLeads(all);
    const {ctx, width, height} = cards.context(view.mapCanvas);
    const left = width < 340 ? 70 : 96;
    const inner = {left, top: 4, width: width - left - 10, height: height - 40};
    const cellWidth = inner.width / shown;
    const cellHeight = Math.min(30, inner.height / Math.max(1, all.length));
    view.grid = {left, top: inner.top, cellWidth, cellHeight, shown};
    const gap = cellHeight > 6 ? 1 : 0;
    all.forEach((counts, i) => {
      const total = counts.reduce((a, b) => a + b, 0) || 1;
      const y = inner.top + i * cellHeight;
      for (let lead = 0; lead < shown; lead += 1) {
        const share = (counts[lead] ?? 0) / total;
        // The root makes rare leads visible.
        const rgb = colours.ofScale('lead', Math.sqrt(share));
        ctx.fillStyle = counts[lead] ? colours.css(rgb) : colours.colour('empty');
        ctx.fillRect(left + lead * cellWidth, y, cellWidth - gap, cellHeight - gap);
        if (counts[lead] && cellHeight > 16 && cellWidth > 30) {
          ctx.fillStyle = colours.ink(rgb);
          ctx.textAlign = 'center';
          ctx.textBaseline = 'middle';
          ctx.fillText(text.share(share, share < 0.0995 ? 1 : 0), left + (lead + 0.5) * cellWidth,
                       y + cellHeight / 2);
        }
      }
    });
    drawMapText(view, ctx, all, height);
  }

  function drawMapText(view, ctx, all, height) {
    const {left, top, cellWidth, cellHeight, shown} = view.grid;
    const bottom = top + all.length * cellHeight;
    ctx.fillStyle = colours.colour('muted');
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'right';
    const every = Math.max(1, Math.ceil(13 / cellHeight));
    for (let i = 0; i < all.length; i += every) {
      ctx.fillText(Leeway.fitText(ctx, nameOf(view, i), left - 10), left - 6,
                   top + (i + 0.5) * cellHeight);
    }
    ctx.textAlign = 'center';
    ctx.textBaseline = 'top';
    const everyLead = Math.ceil(24 / cellWidth);
    for (let lead = 0; lead < shown; lead += everyLead) {
      ctx.fillText(label(lead), left + (lead + 0.5) * cellWidth, bottom + 5);
    }
    ctx.fillText('lead (iterations)', left + (shown * cellWidth) / 2,
                 Math.min(height - 13, bottom + 21));
    const {bound} = run.state;
    if (bound === null || bound >= shown) return;
    ctx.strokeStyle = colours.colour('bound');
    ctx.lineWidth = 2;
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    ctx.moveTo(left + (bound + 1) * cellWidth - 0.5, top);
    ctx.lineTo(left + (bound + 1) * cellWidth - 0.5, bottom);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.lineWidth = 1;
  }

  function tip(view, x, y) {
    const {grid} = view;
    if (!grid) return null;
    const i = Math.floor((y - grid.top) / grid.cellHeight);
    const lead = Math.floor((x - grid.left) / grid.cellWidth);
    const counts = lists(view)[i];
    if (!counts || lead < 0 || lead >= grid.shown) return null;
    const total = counts.reduce((a, b) => a + b, 0) || 1;
    return [`${text.brief(nameOf(view, i))}, lead ${label(lead)}`,
            `${text.plural(counts[lead] ?? 0, 'pull')}, ` +
              text.share((counts[lead] ?? 0) / total)];
  }

  function sentence(leads) {
    const {state} = run;
    const {kind} = run.selected();
    if (kind !== 'interval' && state.sentences.leads) return state.sentences.leads;
    const total = leads.reduce((a, b) => a + b, 0);
    if (!total) return `No pull is answered${run.selectedPhrase()}.`;
    if (state.bound === null) {
      const mean = leads.reduce((sum, n, lead) => sum + n * lead, 0) / total;
      return `The mean lead of a pull is ${text.number(mean, 2)} iterations; there is no bound.`;
    }
    const at = leads.reduce((sum, n, lead) => sum + (lead >= state.bound ? n : 0), 0);
    return `${text.share(at / total)} of the pulls use the whole bound of ${state.bound}` +
      `${run.selectedPhrase()}.`;
  }

  function table(view) {
    if (view.by === 'all') {
      const {leads} = run.sums();
      const total = leads.reduce((a, b) => a + b, 0) || 1;
      return {head: [`Lead, ${run.selectedText()}`, 'Pulls', 'Share'],
              rows: Array.from(leads, (n = 0, lead) => [label(lead), text.count(n),
                                                        text.share(n / total)])};
    }
    const rows = lists(view).map((counts, i) => {
      const total = counts.reduce((a, b) => a + b, 0);
      const mean = counts.reduce((sum, n, lead) => sum + n * lead, 0) / (total || 1);
      return {name: nameOf(view, i), total, mean, largest: counts.findLastIndex((n) => n > 0)};
    }).sort((a, b) => b.mean - a.mean).slice(0, 20);
    return {head: [view.by === 'row' ? 'Worker' : 'Shard', 'Pulls', 'Mean lead', 'Largest'],
            rows: rows.map(({name, total, mean, largest}) => [text.brief(name, 40),
              text.count(total), text.number(mean, 3), largest < 0 ? '–' : label(largest)])};
  }

  Leeway.views.push({id: 'leads', needsEvents: true, title: 'Leads', setup, draw, table,
                     keys: ['intervals', 'leads_by_row', 'leads_by_shard', 'bound', 'sentences',
                            'ended']});
})(globalThis.Leeway ??= {});
