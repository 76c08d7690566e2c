# SPDX-License-Identifier: Apache-2.0
"""Checks that hold for every view: names for screen readers, contrast, focus, no animation, nothing wider than the screen.

Each is a script that returns a list of findings.
"""
import axe

# An element that can be used needs a name. (Chromium computes it; this is what it computes from.)
NAMES = """
const usable = document.querySelectorAll('a[href], button, input, select, [tabindex="0"], [role]:not([role="presentation"])');
const named = (e) => (e.getAttribute('aria-label') || '').trim() || (e.labels && [...e.labels].some((l) => l.textContent.trim())) || e.textContent.trim() || e.getAttribute('title')
  || e.id && document.querySelector(`label[for="${CSS.escape(e.id)}"]`);
const findings = [...usable].filter((e) => !e.hidden && !named(e) && e.getAttribute('role') !== 'alert' && e.getAttribute('role') !== 'status').map((e) => 'no name: ' + e.outerHTML.slice(0, 120));
for (const t of document.querySelectorAll('table')) if (!t.caption || !t.caption.textContent.trim()) findings.push('table without a caption');
for (const t of document.querySelectorAll('th:not([scope])')) findings.push('heading without a scope: ' + t.textContent);
if (document.querySelectorAll('h1').length !== 1) findings.push('not one h1');
if (!document.documentElement.lang) findings.push('no language');
const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) findings.push('id twice: ' + id);
for (const chart of document.querySelectorAll('.chart-box')) if (!chart.getAttribute('aria-valuetext')) findings.push('chart without a text');
return findings;
"""

# WCAG 2: text 4.5, large or bold text 3. Colours behind are those of the nearest ancestor that has one.
CONTRAST = """
const canvas = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d', {willReadFrequently: true});
const painted = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = '#000'; canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
const known = new Map();
const rgba = (colour) => { if (!known.has(colour)) known.set(colour, painted(colour)); return known.get(colour); };
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const ground = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255]; };
const seen = new Map();
for (const e of document.querySelectorAll('body *')) {
  const text = [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join('');
  if (!text || !e.getClientRects().length || e.closest('.sr-only, .skip, option, title, noscript')) continue;
  const style = getComputedStyle(e);
  const colour = e instanceof SVGElement ? style.fill : style.color;
  const [a, b] = [light(rgba(colour)), light(ground(e))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05), size = parseFloat(style.fontSize);
  const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
  if (ratio < least) seen.set(`${e.tagName}.${e.getAttribute('class')} ${colour}`, `contrast ${ratio.toFixed(2)}: ${e.tagName}.${e.getAttribute('class')} "${text.slice(0, 30)}"`);
}
return [...seen.values()];
"""

STILL = """
return [...document.querySelectorAll('*')].filter((e) => { const s = getComputedStyle(e); return s.animationName !== 'none' || parseFloat(s.transitionDuration) > 0; }).map((e) => 'moves: ' + e.outerHTML.slice(0, 80));
"""

# Tables may be wider than the screen, because they scroll by themselves; the page may not.
WIDTH = """
const wide = document.documentElement.scrollWidth - innerWidth;
return wide > 0 ? [`${wide} pixels wider than the screen`] : [];
"""

# Touch and weak hands: WCAG 2.2, 24 pixels, except links within text.
TARGETS = """
return [...document.querySelectorAll('button, select, input:not([type="checkbox"]), nav a, .presets a')].filter((e) => e.getClientRects().length && e.getBoundingClientRect().height < 24).map((e) => 'small: ' + e.outerHTML.slice(0, 80));
"""

# What has the focus must look different from what has not.
FOCUS = """
const e = document.activeElement, s = getComputedStyle(e);
if (e === document.body) return 'body';
const drawn = e instanceof SVGElement ? [...e.querySelectorAll('path, circle, rect')].map((p) => getComputedStyle(p)).some((p) => p.strokeOpacity !== '1' || p.fill !== 'none') : false;
return (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0) || drawn || e.id === 'view' ? '' : 'no focus ring: ' + e.outerHTML.slice(0, 100);
"""

ALL = {"names": NAMES, "contrast": CONTRAST, "still": STILL, "width": WIDTH, "targets": TARGETS}


def rules():
    """axe-core, or None if it cannot be fetched."""
    try:
        return axe.source()
    except axe.Unavailable as error:
        print(f"without axe-core: {error}")
        return None


def look(page, name, text, keep=lambda name: None):
    """Findings of all checks, and of axe-core (its text), of the view that is open: light and dark, wide and at 375 pixels."""
    found, browser = [], page.browser
    for scheme in ("light", "dark"):
        browser.media(prefers_color_scheme=scheme)
        for check, script in ALL.items():
            found += [f"{name}, {scheme}, {check}: {one}" for one in browser.run(script)]
        found += [f"{name}, {scheme}, axe: {one}" for one in axe.findings(browser, text, scheme == "dark")] if text else []
        keep(f"{name}-{scheme}")
    browser.media()
    page.act(lambda: browser.viewport(375, 800))
    found += [f"{name}, 375 pixels: {one}" for check in ("width", "targets", "names") for one in browser.run(ALL[check])]
    keep(f"{name}-375")
    page.act(lambda: browser.viewport(1280, 900))
    return found
