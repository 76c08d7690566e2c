// SPDX-License-Identifier: Apache-2.0
// Pictures and tables as files, and text to the clipboard.

const STYLES = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-opacity', 'opacity', 'font-size', 'font-family', 'font-weight', 'text-anchor', 'paint-order'];

/** A copy that needs no style sheet. */
function plain(svg, title) {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll('*')], to = [copy, ...copy.querySelectorAll('*')];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) {
      const value = style.getPropertyValue(name);
      if (value && !(name === 'fill' && value.startsWith('url'))) to[i].setAttribute(name, value);
    }
    to[i].removeAttribute('class');
  });
  copy.querySelector('title').textContent = title;
  return copy;
}

/** All charts of a list, one below the other with their titles, as the text of one SVG. */
export function svgText(list) {
  const ns = 'http://www.w3.org/2000/svg';
  const whole = document.createElementNS(ns, 'svg');
  const body = getComputedStyle(document.querySelector('.panel') || document.body);
  const rect = document.createElementNS(ns, 'rect');
  rect.setAttribute('fill', body.backgroundColor);
  whole.append(rect);
  let top = 0, width = 0;
  for (const {svg, title} of list) {
    const text = document.createElementNS(ns, 'text');
    for (const [key, value] of Object.entries({x: 10, y: top + 18, fill: body.color, 'font-size': 13, 'font-family': 'sans-serif'})) text.setAttribute(key, value);
    text.textContent = title;
    const copy = plain(svg, title);
    copy.setAttribute('y', top + 24);
    whole.append(text, copy);
    top += 30 + svg.height.baseVal.value;
    width = Math.max(width, svg.width.baseVal.value);
  }
  for (const [key, value] of Object.entries({width, height: top, viewBox: `0 0 ${width} ${top}`})) whole.setAttribute(key, value);
  rect.setAttribute('width', width);
  rect.setAttribute('height', top);
  return new XMLSerializer().serializeToString(whole);
}

/** The same as a PNG, at twice the size. */
export function png(text) {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement('canvas');
      canvas.width = image.width * 2;
      canvas.height = image.height * 2;
      canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('no picture'))), 'image/png');
    };
    image.onerror = () => reject(new Error('no picture'));
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  });
}

export function download(filename, blob) {
  const url = URL.createObjectURL(blob);
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = filename.replace(/[^\w.-]+/g, '_');
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Copies; true if the clipboard took it. Without a secure context there is none. */
export async function copy(type, value) {
  try {
    if (type === 'text/plain') await navigator.clipboard.writeText(value);
    else await navigator.clipboard.write([new ClipboardItem({[type]: value})]);
    return true;
  } catch {
    return false;
  }
}

// A cell that begins like a formula would be one in a spreadsheet.
function cell(value) {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = (header, rows) => [header, ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
