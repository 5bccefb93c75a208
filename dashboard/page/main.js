// Starts the page: reads the state of a file, or streams it from the server.
//
// Every script of the page is a plain script that adds to one object, Leeway. Scripts run in the
// order of index.html. Modules would be cleaner, but a report in one file inlines all scripts, and
// inlined modules cannot import each other from file://. A report replaces each element with src
// or href by its content, in place, drops the icon, and replaces the comment "state" by a script
// element of type application/json with the id "state". Its JSON has \u003c for each "<". No script
// may contain the end tag of a script.
(function (Leeway) {
  'use strict';

  const {run, cards, header} = Leeway;
  const token = new URLSearchParams(location.search).get('token');
  const retryAfter = 3000;  // milliseconds
  let pending = new Set();
  let isAsked = false;
  // A drawing that took c ms with its layout and painting is followed by the next one after 3c ms
  // at the earliest, so that a slow browser skips frames and still answers its user.
  const restFactor = 3;
  let restUntil = 0;
  let source = null;

  Leeway.address = (path, parameters = {}) => {
    const query = new URLSearchParams(token === null ? parameters : {...parameters, token});
    return query.size ? `${path}?${query}` : path;
  };

  Leeway.stop = async () => {
    const button = document.getElementById('stop');
    button.disabled = true;
    cards.setText(button, 'Stopping');
    try {
      const answer = await fetch(Leeway.address('stop'), {method: 'POST'});
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    } catch (error) {
      button.disabled = false;
      cards.setText(button, 'Stop after this iteration');
      header.connection('lost', `the run was not stopped: ${error.message}`);
    }
  };

  // Changes are drawn in the next frame, several at once if they come faster than frames.
  function changed(keys) {
    for (const key of keys) pending.add(key);
    if (isAsked) return;
    isAsked = true;
    const rest = restUntil - performance.now();
    if (rest > 0) setTimeout(() => requestAnimationFrame(draw), rest);
    else requestAnimationFrame(draw);
  }

  function draw() {
    isAsked = false;
    const began = performance.now();
    // Runs after the frame is painted.
    setTimeout(() => { restUntil = began + restFactor * (performance.now() - began); });
    const keys = pending;
    pending = new Set();
    Leeway.colours.assignCauses(run.state);
    header.draw(keys);
    cards.changed(keys);
  }

  function showConnection() {
    const {ended} = run.state;
    if (ended) {
      header.connection('ended', ended.text && ended.text !== ended.reason
        ? `ended: ${ended.reason}, ${ended.text}` : `ended: ${ended.reason}`);
    } else if (Leeway.isFile) {
      header.connection('ended', 'recorded');
    } else {
      header.connection('live', 'live');
    }
  }

  function receive(keys) {
    changed(keys);
    showConnection();
    if (run.state.ended) source?.close();
  }

  function connect() {
    source = new EventSource(Leeway.address('events'));
    source.addEventListener('state', (event) => receive(run.replaceState(JSON.parse(event.data))));
    source.addEventListener('change', (event) => {
      if (run.state) receive(run.applyChange(JSON.parse(event.data)));
    });
    source.onerror = async () => {
      if (run.state?.ended) return;
      header.connection('lost', 'connection lost, retrying');
      // EventSource retries by itself, except after an answer that is no event stream.
      if (source.readyState !== EventSource.CLOSED) return;
      const answer = await fetch(Leeway.address('state')).catch(() => null);
      if (answer && !answer.ok) header.connection('lost', await answer.text());
      if (answer?.status !== 403) setTimeout(connect, retryAfter);
    };
  }

  const embedded = document.getElementById('state');
  Leeway.isFile = embedded !== null;
  for (const view of Leeway.views) cards.define(view);
  header.start();
  if (embedded) receive(run.replaceState(JSON.parse(embedded.textContent)));
  else connect();
})(globalThis.Leeway ??= {});
