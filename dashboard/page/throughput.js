// View 9: samples per second, bytes with and without codecs, memory, and counts of messages.
(function (Leeway) {
  'use strict';

  const {text, run, cards, charts} = Leeway;
  const {element} = cards;

  function setup(view) {
    const canvas = cards.addCanvas(view, 160);
    view.chart = charts.make(view, canvas, 'line',
      [{label: 'samples/s', data: [], borderWidth: 1.6, fill: 'origin', stepped: 'middle',
        paint: {borderColor: 'line-train', backgroundColor: 'line-fill'}}],
      () => ({x: charts.timeAxis(),
              y: charts.axis({min: 0, ticks: {maxTicksLimit: 5, callback: (v) => text.short(v)},
                              afterFit: (scale) => { scale.width = 44; }})}),
      {tooltip: {callbacks: {
        title: (items) => text.seconds(items[0].parsed.x),
        label: (item) => `${text.number(item.parsed.y, 4)} samples/s`,
      }}});
    charts.selectByPointer(view.chart);
    view.facts = element('dl', {class: 'facts-list'});
    view.section.append(view.facts);
  }

  function draw(view) {
    const {chart} = view;
    cards.say(view, sentence());
    chart.data.datasets[0].data = charts.points((interval, length) =>
      (length > 0 ? interval.samples / length : 0));
    chart.options.scales.x.max = run.endOfTime();
    charts.setCursor(chart);
    chart.update('none');
    fillFacts(view);
  }

  function rateOfSelection() {
    const {begin, until} = run.selected();
    const sums = run.sums();
    const seconds = Math.max(1e-9, until - begin);
    return {samples: sums.samples / seconds, push: sums.push_bytes / seconds,
            pull: sums.pull_bytes / seconds, stages: sums.stage_bytes / seconds,
            updates: sums.updates / seconds};
  }

  function sentence() {
    const {state} = run;
    const stated = run.sentenceOfNow('throughput');
    if (stated) return stated;
    const rate = state.run.has_events ? rateOfSelection().samples
                                      : state.totals.samples_per_second;
    return `${text.count(Math.round(rate))} samples/s${run.selectedPhrase()}.`;
  }

  function facts() {
    const {totals} = run.state;
    const list = [
      ['Pushed in all', text.bytes(totals.push_bytes)],
      ['Pulled in all', text.bytes(totals.pull_bytes)],
    ];
    const hasStages = totals.stage_bytes > 0;
    if (hasStages) list.push(['Between stages in all', text.bytes(totals.stage_bytes)]);
    const sent = totals.push_bytes + totals.pull_bytes + totals.stage_bytes;
    const plain = totals.plain_push_bytes + totals.plain_pull_bytes + totals.plain_stage_bytes;
    if (plain > sent) list.push(['Saved by codecs', text.share(1 - sent / plain)]);
    list.push(['Iterations', text.count(totals.iterations)],
              ...(totals.memory_bytes ? [['Memory', text.bytes(totals.memory_bytes)]] : []),
              ...(totals.peak_memory_bytes
                ? [['Peak memory', text.bytes(totals.peak_memory_bytes)]] : []));
    if (run.state.run.has_events) {
      const rate = rateOfSelection();
      list.unshift(['Updates', `${text.number(rate.updates, 3)}/s`],
                   ['Pushed', `${text.bytes(rate.push)}/s`],
                   ['Pulled', `${text.bytes(rate.pull)}/s`],
                   ...(hasStages ? [['Between stages', `${text.bytes(rate.stages)}/s`]] : []));
    }
    const unusual = [['Partial pushes', totals.partial_pushes],
                     ['Malformed messages', totals.malformed],
                     ['Refused messages', totals.refused],
                     ['Events lost for the page', totals.lost_events]];
    for (const [name, n] of unusual) if (n) list.push([name, text.count(n)]);
    return list;
  }

  function fillFacts(view) {
    const list = facts();
    while (view.facts.children.length > list.length) view.facts.lastChild.remove();
    list.forEach(([name, value], i) => {
      const pair = view.facts.children[i] ?? view.facts.appendChild(
        element('div', {}, element('dt', {}), element('dd', {})));
      cards.setText(pair.children[0], name);
      cards.setText(pair.children[1], value);
    });
  }

  function table() {
    const {totals} = run.state;
    return {head: ['Bytes, whole run', 'As sent', 'Without codecs'],
            rows: [['pushed', text.bytes(totals.push_bytes), text.bytes(totals.plain_push_bytes)],
                   ['pulled', text.bytes(totals.pull_bytes), text.bytes(totals.plain_pull_bytes)],
                   ['between stages', text.bytes(totals.stage_bytes),
                    text.bytes(totals.plain_stage_bytes)],
                   ['refused messages', text.count(totals.refused), ''],
                   ['malformed messages', text.count(totals.malformed), ''],
                   ['partial pushes', text.count(totals.partial_pushes), '']]};
  }

  Leeway.views.push({id: 'throughput', title: 'Throughput', setup, draw, table,
                     keys: ['intervals', 'width', 'totals', 'sentences', 'ended']});
})(globalThis.Leeway ??= {});
