// Numbers, times and names as text.
(function (Leeway) {
  'use strict';

  const group = new Intl.NumberFormat('en-US', {maximumFractionDigits: 0});

  function count(n) {
    return Number.isFinite(n) ? group.format(n) : '–';
  }

  const formats = new Map();

  // Formats are kept: toLocaleString makes a new one in each call, which takes longer than a chart.
  function format(least, most) {
    const key = 10 * least + most;
    if (!formats.has(key)) {
      formats.set(key, new Intl.NumberFormat('en-US', {minimumFractionDigits: least,
                                                       maximumFractionDigits: most}));
    }
    return formats.get(key);
  }

  // At most `digits` significant digits, never in scientific notation below 1e15.
  function number(n, digits = 3) {
    if (!Number.isFinite(n)) return '–';
    if (n === 0) return '0';
    const size = Math.floor(Math.log10(Math.abs(n)));
    const decimals = Math.min(8, Math.max(0, digits - 1 - size));
    return format(decimals, decimals).format(n);
  }

  function share(x, decimals = 1) {
    return Number.isFinite(x) ? (100 * x).toFixed(decimals) + '%' : '–';
  }

  function change(x, decimals = 1) {
    return Number.isFinite(x) ? (x < 0 ? '−' : '+') + share(Math.abs(x), decimals) : '–';
  }

  function signed(x, digits = 2) {
    return Number.isFinite(x) ? (x < 0 ? '−' : '+') + number(Math.abs(x), digits) : '–';
  }

  // A duration: three significant digits below a minute, then minutes, hours and days.
  function seconds(s) {
    if (!Number.isFinite(s)) return '–';
    if (s === 0) return '0 s';
    if (s < 1e-3) return number(s * 1e6, 3) + ' µs';
    if (s < 1) return number(s * 1e3, 3) + ' ms';
    if (s < 59.995) return number(s, 3) + ' s';
    if (s < 3600) return `${Math.floor(s / 60)} min ${pad(Math.floor(s % 60))} s`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ${pad(Math.floor(s / 60) % 60)} min`;
    return `${Math.floor(s / 86400)} d ${pad(Math.floor(s / 3600) % 24)} h`;
  }

  function pad(n) {
    return String(n).padStart(2, '0');
  }

  // A moment of the run, with as many decimals as `step` seconds need.
  function moment(s, step = 1) {
    if (!Number.isFinite(s)) return '–';
    if (s >= 600) {
      const clock = `${Math.floor(s / 60) % 60}:${pad(Math.floor(s % 60))}`;
      return s < 3600 ? clock : `${Math.floor(s / 3600)}:${clock.padStart(5, '0')}`;
    }
    const decimals = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
    return s.toFixed(decimals);
  }

  function span(begin, end, step) {
    const unit = end >= 600 ? '' : ' s';
    return `${moment(begin, step)}–${moment(end, step)}${unit}`;
  }

  const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

  function bytes(n) {
    if (!Number.isFinite(n)) return '–';
    let unit = 0;
    while (n >= 999.5 && unit < byteUnits.length - 1) {
      n /= 1000;
      unit += 1;
    }
    return `${unit === 0 ? count(n) : number(n, 3)} ${byteUnits[unit]}`;
  }

  // Short axis labels: 1.2M, 30k.
  const compact = new Intl.NumberFormat('en-US', {notation: 'compact', maximumFractionDigits: 1});

  function short(n) {
    return Math.abs(n) < 1000 ? number(n, 3).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '')
                              : compact.format(n).replace('K', 'k');
  }

  function plural(n, noun) {
    return `${count(n)} ${noun}${n === 1 ? '' : 's'}`;
  }

  function capital(text) {
    return text.charAt(0).toUpperCase() + text.slice(1);
  }

  // Names come from users and have any length.
  function brief(name, length = 24) {
    return name.length <= length ? name : name.slice(0, length - 1) + '…';
  }

  // Labels keep both ends, because the numbers of workers are at the end.
  function ends(name, length) {
    if (name.length <= length) return name;
    const tail = Math.floor((length - 1) / 2);
    return `${name.slice(0, length - 1 - tail)}…${tail > 0 ? name.slice(-tail) : ''}`;
  }

  Leeway.text = {count, number, share, change, signed, seconds, moment, span, bytes, short, plural,
                 capital, brief, ends};
})(globalThis.Leeway ??= {});
