// SPDX-License-Identifier: Apache-2.0
// Numbers and times as text. Delays are nanoseconds, times milliseconds since 1970.

import {INVISIBLE} from './dom.js';

export const UNKNOWN = 'unknown';

const UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

/** 4.381 ms; "unknown" for null. */
export function delay(ns) {
  if (ns === null || ns === undefined) return UNKNOWN;
  if (ns === 0) return '0';
  const [size, unit] = UNITS.find(([u]) => Math.abs(ns) >= u * 0.99995) || UNITS[3];
  return size === 1 ? `${Math.round(ns)} ns` : `${digits(ns / size)} ${unit}`;
}

/** The same without trailing zeros: for axes. */
export const tickDelay = (ns) => delay(ns).replace(/\.(\d*?)0+ /, (_, rest) => (rest ? `.${rest} ` : ' '));

export const count = (n) => (n === null || n === undefined ? UNKNOWN : n.toLocaleString('en-US', {maximumFractionDigits: 0}));

/** 0.0297 %: three digits that count. */
export function percent(ratio) {
  if (ratio === null || ratio === undefined) return UNKNOWN;
  const value = ratio * 100;
  if (value === 0) return '0 %';
  if (value >= 99.95 && value < 100) return '> 99.9 %';
  const places = Math.min(8, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))));
  return `${value >= 100 ? value.toFixed(0) : Number(value.toFixed(places))} %`;
}

/** 3 of 10,112 (0.0297 %) */
export function loss(lost, of, ratio) {
  if (lost === null || lost === undefined) return UNKNOWN;
  return `${count(lost)} of ${count(of)} (${percent(ratio === undefined ? (of ? lost / of : null) : ratio)})`;
}

export function bytes(n) {
  if (n === null || n === undefined) return UNKNOWN;
  const power = n < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(n) / 10));
  return `${power ? (n / 1024 ** power).toFixed(1) : n} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`;
}

/** 90 s, 2 h, 7 d */
export function span(ms) {
  const units = [[86400e3, 'd'], [3600e3, 'h'], [60e3, 'min'], [1e3, 's'], [1, 'ms']];
  const [size, unit] = units.find(([u]) => ms >= u && (ms >= 2 * u || ms % u === 0)) || units[4];
  return `${Number((ms / size).toFixed(ms / size < 10 ? 1 : 0))} ${unit}`;
}

let utc = false;
export const useUtc = (on) => { utc = on; };
const formats = new Map();

function parts(ms, options) {
  const key = JSON.stringify([utc, options]);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat('en-GB', {hourCycle: 'h23', timeZone: utc ? 'UTC' : undefined, ...options}));
  return formats.get(key).format(ms);
}

export const day = (ms) => {
  const [d, m, y] = parts(ms, {year: 'numeric', month: '2-digit', day: '2-digit'}).split('/');
  return `${y}-${m}-${d}`;
};
const fraction = (ms) => (Math.round(ms) % 1000 ? `.${String(Math.round(ms) % 1000).padStart(3, '0')}` : '');
export const clock = (ms) => parts(ms, {hour: '2-digit', minute: '2-digit', second: '2-digit'}) + fraction(ms);
export const time = (ms) => (Number.isFinite(ms) ? `${day(ms)} ${clock(ms)}` : UNKNOWN);
export const zone = (ms) => (utc ? 'UTC' : new Intl.DateTimeFormat('en-GB', {timeZoneName: 'short'}).formatToParts(ms).find((p) => p.type === 'timeZoneName').value);

/** "2026-11-15 10:02:00 to 10:03:00" */
export const period = (from, to) => `${time(from)} to ${day(from) === day(to) ? clock(to) : time(to)}`;

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 10800e3, 21600e3, 43200e3,
  86400e3, 172800e3, 604800e3, 1209600e3, 2592000e3, 7776000e3, 31536000e3];

/** Ticks of an axis of time: [{at, text}]. */
export function timeTicks(from, to, most) {
  const step = STEPS.find((size) => (to - from) / size <= most) || STEPS[STEPS.length - 1];
  const offset = utc ? 0 : new Date(from).getTimezoneOffset() * 60e3; // ticks are at full hours and days of the shown zone
  const ticks = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) {
    const full = clock(at);
    const text = step >= 86400e3 || full === '00:00:00' ? day(at).slice(5) : step >= 60e3 ? full.slice(0, 5) : step >= 1e3 ? full.slice(0, 8) : full;
    ticks.push({at, text});
  }
  return ticks;
}

/** Ticks of a linear axis. */
export function linearTicks(low, high, most) {
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((size) => size >= raw * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-12); i++) ticks.push(i * step);
  return ticks;
}

/** Ticks of a logarithmic axis. */
export function logTicks(low, high) {
  const ticks = [];
  const wide = Math.log10(high / low) > 3;
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const n of wide ? [1] : [1, 2, 5]) if (n * 10 ** power >= low && n * 10 ** power <= high) ticks.push(n * 10 ** power);
  }
  return ticks;
}

/** A word of a command for bash. What cannot be seen is written as \u202e, which bash understands in $'...'. */
export function quoted(word) {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  if (!INVISIBLE.test(word)) return `'${word.replaceAll("'", "'\\''")}'`;
  return `$'${word.replace(/[\\']/g, '\\$&').replace(new RegExp(INVISIBLE, 'g'), (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, '0')}`)}'`;
}
