// SPDX-License-Identifier: Apache-2.0
// Pointer and keys on charts: a cursor common to all charts of a view, drag to zoom, arrows, + and -, Escape.
import {h, visible} from './dom.js';
import {binAt, binText} from './chart.js';

const SHORTEST = 10; // ms: no zoom below this
const DRAG = 4;      // pixels that the pointer moves before it is a drag

function readout(box, pairs) {
  box.replaceChildren(...pairs.flatMap(([word, value]) => [h('span', {class: `part part-${word === 'lost' && value.startsWith('0 ') ? 'none' : word.split(' ')[0]}`}, h('b', {}, word), ' ', visible(value)), ' ']));
}

/** panels: [{series, svg, box, readout, idle}]; view: {since, until}; zoom(since, until) and out() change the address. */
export function connect(panels, view, cursor, {zoom, out}) {
  const first = panels[0];
  const left = Number(first.svg.dataset.left), width = Number(first.svg.dataset.plotWidth);
  const timeAt = (x) => view.since + (Math.min(width, Math.max(0, x - left)) / width) * (view.until - view.since);
  const xAt = (ms) => left + ((ms - view.since) / (view.until - view.since)) * width;

  function show(ms) {
    cursor.at = ms;
    for (const panel of panels) {
      const bin = ms === null ? -1 : binAt(panel.series, ms);
      const line = panel.svg.querySelector('.cursor');
      const x = ms === null ? -9 : bin < 0 ? xAt(ms) : xAt(Math.min(view.until, panel.series.start_ns[bin] / 1e6 + panel.series.bin_ns / 2e6));
      line.setAttribute('x1', x);
      line.setAttribute('x2', x);
      const pairs = bin < 0 ? (ms === null ? panel.idle : [['time', panel.isEarly ? 'being loaded' : 'no results here']]) : binText(panel.series, bin);
      readout(panel.readout, pairs);
      panel.box.setAttribute('aria-valuenow', Math.max(0, bin));
      panel.box.setAttribute('aria-valuetext', pairs.map(([word, value]) => `${word} ${visible(value)}`).join(', '));
    }
  }

  function select(from, to) {
    for (const {svg} of panels) {
      const box = svg.querySelector('.selection');
      box.setAttribute('x', Math.min(xAt(from), xAt(to)));
      box.setAttribute('width', Math.abs(xAt(to) - xAt(from)));
    }
  }

  function zoomBy(factor) {
    const middle = cursor.at ?? (view.since + view.until) / 2;
    const length = Math.max(SHORTEST, (view.until - view.since) * factor);
    const part = (middle - view.since) / (view.until - view.since);
    zoom(middle - length * part, middle + length * (1 - part));
  }

  /** Moves the cursor by bins in which something is known or missing. */
  function step({series}, bins) {
    const full = [...series.start_ns.keys()].filter((i) => series.intervals[i] || series.missing[i]);
    if (!full.length) return;
    const here = cursor.at === null ? null : binAt(series, cursor.at);
    const now = here === null ? (bins > 0 ? -1 : full.length) : full.findLastIndex((i) => i <= here);
    const next = full[Math.min(full.length - 1, Math.max(0, now + bins))];
    show(series.start_ns[next] / 1e6 + series.bin_ns / 2e6);
  }

  const keys = {
    ArrowLeft: (panel, event) => step(panel, event.shiftKey ? -10 : -1),
    ArrowRight: (panel, event) => step(panel, event.shiftKey ? 10 : 1),
    PageUp: () => zoom(view.since - (view.until - view.since) / 2, view.until - (view.until - view.since) / 2),
    PageDown: () => zoom(view.since + (view.until - view.since) / 2, view.until + (view.until - view.since) / 2),
    Home: (panel) => step(panel, -Infinity),
    End: (panel) => step(panel, Infinity),
    '+': () => zoomBy(0.5),
    '=': () => zoomBy(0.5),
    '-': () => zoomBy(2),
    Escape: () => (cursor.at === null ? out() : show(null)),
  };

  function attach(panel) {
    const {box} = panel;
    let start = null, dragging = false;
    const x = (event) => event.clientX - panel.svg.getBoundingClientRect().left;
    box.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || event.pointerType === 'touch') return;
      start = x(event);
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener('pointermove', (event) => {
      dragging = start !== null && (dragging || Math.abs(x(event) - start) > DRAG);
      if (dragging) select(timeAt(start), timeAt(x(event)));
      show(timeAt(x(event)));
    });
    box.addEventListener('pointerup', (event) => {
      const [from, to] = [timeAt(start ?? 0), timeAt(x(event))].sort((a, b) => a - b);
      if (dragging && to - from >= SHORTEST) zoom(from, to);
      else if (event.pointerType === 'touch') show(timeAt(x(event)));
      start = null;
      dragging = false;
    });
    box.addEventListener('pointercancel', () => { start = null; dragging = false; select(view.since, view.since); });
    box.addEventListener('pointerleave', () => { if (start === null) show(null); });
    box.addEventListener('dblclick', () => out());
    box.addEventListener('keydown', (event) => {
      const action = keys[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action(panel, event);
    });
  }
  panels.forEach(attach);
  show(cursor.at !== null && cursor.at >= view.since && cursor.at < view.until ? cursor.at : null);
}
