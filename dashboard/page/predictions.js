// View 8: the run under other settings, predicted by a simulation with its measured durations.
(function (Leeway) {
  'use strict';

  const {text, run, cards} = Leeway;
  const {element} = cards;

  function setup(view) {
    view.button = element('button', {type: 'button', id: 'predict', hidden: ''}, 'Predict');
    view.button.addEventListener('click', () => predict(view));
    view.controls.append(view.button);
    view.note = element('p', {class: 'caption', role: 'status'});
    view.box = element('div', {class: 'scroll', tabindex: '0', role: 'region',
                               'aria-label': 'Predictions'});
    view.section.append(view.note, view.box);
    view.result = null;
    view.method = element('p', {class: 'caption'},
      'A simulation repeats the measured durations of this run, iteration by iteration, under ' +
      'each setting. The first two rows, measured and as it ran, show how exact the simulation is.');
    view.section.append(view.method);
  }

  async function predict(view) {
    view.button.disabled = true;
    cards.setText(view.note, 'The simulation is running.');
    try {
      const answer = await fetch(Leeway.address('predict'));
      if (!answer.ok) throw new Error((await answer.text()).trim() || `code ${answer.status}`);
      view.result = await answer.json();
      cards.setText(view.note, '');
    } catch (error) {
      cards.setText(view.note, `No prediction: ${error.message}. Try again.`);
    }
    view.button.disabled = false;
    cards.mark(view, true);
  }

  function draw(view) {
    const {state} = run;
    const result = view.result ?? state.predictions;
    const canPredict = state.run.can_predict && !Leeway.isFile;
    view.button.hidden = !canPredict;
    cards.setText(view.button, result ? 'Predict again' : 'Predict');
    view.box.hidden = !result;
    // An empty card takes a row of its own, as low as its text.
    view.section.parentNode.classList.toggle('no-predictions',
                                             !result && state.run.has_events);
    if (!result) {
      cards.say(view, canPredict
        ? 'Other bounds and the run without its slowest worker can be predicted.'
        : reason(state.run));
      return;
    }
    cards.say(view, result.sentence);
    fill(view, result.rows);
  }

  // Why the page has no predictions.
  function reason({kind, has_events: hasEvents}) {
    if (kind !== 'recorded') return 'No prediction during a run: see leeway view RUN afterwards.';
    if (!hasEvents) return 'No prediction: the run was recorded without --trace.';
    return 'No prediction: the report was written without --predict.';
  }

  // A bar from the run as it was (100%) beside each name.
  function fill(view, rows) {
    const fastest = Math.max(...rows.map((row) => row.samples_per_second), 1e-9);
    const hasLoss = rows.some((row) => Number.isFinite(row.loss_change));
    const head = ['Setting', 'Samples/s', 'Change', 'Waiting', ...(hasLoss ? ['Loss'] : [])];
    cards.fillTable(view.box, {head, rows: rows.map((row) => {
      const bar = element('span', {class: 'gain', 'aria-hidden': 'true'});
      bar.style.setProperty('--share', `${(100 * row.samples_per_second) / fastest}%`);
      return [element('span', {class: 'setting'}, text.brief(row.name, 48), bar),
              text.count(Math.round(row.samples_per_second)), text.change(row.change),
              text.share(row.waiting),
              ...(hasLoss ? [Number.isFinite(row.loss_change) ? text.signed(row.loss_change)
                                                              : '–'] : [])];
    })});
  }

  Leeway.views.push({id: 'predictions', title: 'What would help', setup, draw,
                     keys: ['predictions', 'run', 'ended']});
})(globalThis.Leeway ??= {});
