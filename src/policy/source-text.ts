import { LineCounter } from 'yaml';
import type { PolicyProblem, ProblemCode } from './problem.ts';

/** A range of a text: offsets in UTF-16 code units, [from, to). */
export interface Span {
  from: number;
  to: number;
}

export interface SourceText {
  path: string;
  text: string;
  lineCounter: LineCounter;
}

/** The maximum number of characters in an excerpt of a line. */
const EXCERPT_WIDTH = 160;
/** If a place is after so many characters, the excerpt begins with the second number of characters before it. */
const [EXCERPT_WHOLE_UP_TO, EXCERPT_BEFORE] = [120, 60];
const MAX_MESSAGE = 400;

export function sourceText(path: string, text: string): SourceText {
  const lineCounter = new LineCounter();
  for (let start = 0; start >= 0; ) {
    lineCounter.addNewLine(start);
    const lineEnd = text.indexOf('\n', start);
    start = lineEnd < 0 ? -1 : lineEnd + 1;
  }
  return { path, text, lineCounter };
}

/** A problem at a range of the text. The excerpt stays within the first line of the range. */
export function problemAt(source: SourceText, span: Span, code: ProblemCode, message: string): PolicyProblem {
  const { line, col } = source.lineCounter.linePos(span.from);
  const lineStart = span.from - (col - 1);
  const lineEnd = endOfLine(source.text, lineStart);
  const windowFrom = col - 1 > EXCERPT_WHOLE_UP_TO ? span.from - EXCERPT_BEFORE : lineStart;
  const windowTo = Math.min(lineEnd, windowFrom + EXCERPT_WIDTH);
  const text = maskSecrets(source.text.slice(windowFrom, windowTo)).replaceAll(/\p{Cc}(?<!\t)/gu, '\uFFFD');
  const length = Math.max(1, Math.min(span.to, windowTo) - span.from);
  const excerpt = { text, from: span.from - windowFrom, length };
  return { code, file: source.path, line, column: col, message: shorten(maskSecrets(message)), excerpt };
}

function shorten(message: string): string {
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message;
}

function endOfLine(text: string, from: number): number {
  const at = text.indexOf('\n', from);
  if (at < 0) return text.length;
  return text[at - 1] === '\r' ? at - 1 : at;
}

/** Masks API keys and passwords in URLs, character by character, so that offsets stay valid. */
function maskSecrets(text: string): string {
  return text
    .replaceAll(/napi_\w+/g, (secret) => '*'.repeat(secret.length))
    .replaceAll(/(:\/\/[^\s:/@]*:)([^\s@]+)(?=@)/g, (_all, before: string, secret: string) =>
      before.concat('*'.repeat(secret.length)),
    );
}
