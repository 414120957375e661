/**
 * Draws a terminal session, which record-first-run.sh records, as an animated SVG: lines that begin with `$ ` are commands; the others are
 * what they printed, as it was.
 */
import { readFileSync } from 'node:fs';
import { element, escaped } from '../src/cli/svg-elements.ts';

/** Of a character, in pixels. */
const CHARACTER = 7.85;
const LINE = 18;
const TOP = 44;
const LEFT = 18;

/** Seconds between two lines, and before a command is written. */
const EVERY_S = 0.12;
const PAUSE_S = 1.4;

const STYLE = `.window{fill:#12181c}.bar{fill:#1a2227}text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#c9d3d9;white-space:pre}
.command{fill:#3fb3ba;font-weight:600}.line{opacity:0;animation:show .05s linear forwards}@keyframes show{to{opacity:1}}
@media(prefers-reduced-motion:reduce){.line{opacity:1;animation:none}}`;

function drawSession(text: string): string {
  const lines = text.trimEnd().split('\n');
  const width = Math.ceil(2 * LEFT + CHARACTER * Math.max(...lines.map((line) => line.length)));
  const height = TOP + lines.length * LINE + 10;
  let atS = 0;
  const drawn = lines.map((line, index) => {
    const isCommand = line.startsWith('$ ');
    atS += isCommand && index > 0 ? PAUSE_S : EVERY_S;
    const place = { x: LEFT, y: TOP + index * LINE + 13, style: `animation-delay:${atS.toFixed(2)}s` };
    return element(
      'text',
      { class: isCommand ? 'line command' : 'line', 'xml:space': 'preserve', ...place },
      escaped(line),
    );
  });
  const commands = lines.filter((line) => line.startsWith('$ ')).map((line) => line.slice(2));
  const content = [
    element('title', { id: 'title' }, escaped(`A terminal: ${commands.join(', ')}`)),
    element('style', {}, STYLE),
    element('rect', { class: 'window', width, height, rx: 8 }),
    element('rect', { class: 'bar', width, height: 28, rx: 8 }),
    ...drawn,
  ];
  const size = { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-labelledby': 'title' };
  return `${element('svg', { xmlns: 'http://www.w3.org/2000/svg', ...size }, content.join('\n'))}\n`;
}

process.stdout.write(drawSession(readFileSync(0, 'utf8')));
