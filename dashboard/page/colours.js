// Colours of the theme, of causes and of scales, as the canvas needs them.
(function (Leeway) {
  'use strict';

  const root = document.documentElement;
  let cache = new Map();

  // The value of a colour of page.css in the current theme. Custom properties keep light-dark()
  // unresolved, so an element resolves it.
  function colour(name) {
    let value = cache.get(name);
    if (value === undefined) {
      const probe = document.createElement('span');
      probe.style.color = `var(--${name})`;
      document.body.append(probe);
      value = getComputedStyle(probe).color;
      probe.remove();
      cache.set(name, value);
    }
    return value;
  }

  function rgb(name) {
    return colour(name).match(/[\d.]+/g).slice(0, 3).map(Number);
  }

  function forgetColours() {
    cache = new Map();
    scales.clear();
  }

  // 256 colours from `low` to `high` over `middle`, as [r, g, b].
  const scales = new Map();

  function scale(name) {
    let steps = scales.get(name);
    if (steps) return steps;
    const ends = [rgb(`${name}-low`), rgb(`${name}-middle`), rgb(`${name}-high`)];
    steps = [];
    for (let i = 0; i < 256; i += 1) {
      const at = i / 127.5;
      const [a, b] = at < 1 ? [ends[0], ends[1]] : [ends[1], ends[2]];
      const t = at < 1 ? at : at - 1;
      steps.push(a.map((value, channel) => Math.round(value + (b[channel] - value) * t)));
    }
    scales.set(name, steps);
    return steps;
  }

  function css([r, g, b]) {
    return `rgb(${r}, ${g}, ${b})`;
  }

  function ofScale(name, share) {
    const index = Math.round(255 * Math.min(1, Math.max(0, share)));
    return scale(name)[index];
  }

  // Black or white, the one with more contrast by WCAG's relative luminance.
  function ink(rgb) {
    const [r, g, b] = rgb.map((value) => {
      const c = value / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000000' : '#ffffff';
  }

  // Causes other than actors have a fixed colour. The actors that cost most share `slots`; each
  // keeps its colour as long as it is among them.
  const fixed = {'samples': 'cause-samples', 'requests': 'cause-requests',
                 'weights': 'cause-weights', 'stage before': 'cause-before',
                 'stage after': 'cause-after'};
  const slots = 6;
  let holders = new Array(slots).fill(null);

  // Assigns colours to the causes that the page names, longest first.
  function assignCauses(state) {
    const names = state.causes.map((entry) => state.cause_names[entry.cause] ?? '')
      .filter((name) => !(name in fixed)).slice(0, slots);
    holders = holders.map((name) => (names.includes(name) ? name : null));
    for (const name of names) {
      if (holders.includes(name)) continue;
      holders[holders.indexOf(null)] = name;
    }
  }

  // The name of a cause's colour in page.css, or '' if it belongs to the other causes.
  function causeColour(name) {
    if (Object.hasOwn(fixed, name)) return fixed[name];
    const slot = holders.indexOf(name);
    return slot < 0 ? '' : `cause-${slot}`;
  }

  function otherCauses() {
    return 'cause-other';
  }

  // The theme: the user's choice, else the system's.
  function storedTheme() {
    try {
      return localStorage.getItem('leeway-theme');
    } catch {
      return null;
    }
  }

  function isDark() {
    const theme = root.dataset.theme;
    return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  }

  function toggleTheme() {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    try {
      localStorage.setItem('leeway-theme', root.dataset.theme);
    } catch {
      // Without storage the choice holds for this page view.
    }
    forgetColours();
  }

  const stored = storedTheme();
  if (stored === 'dark' || stored === 'light') root.dataset.theme = stored;

  Leeway.colours = {colour, rgb, css, ofScale, ink, assignCauses, causeColour, otherCauses, isDark,
                    toggleTheme, forgetColours};
})(globalThis.Leeway ??= {});
