import type { z } from 'zod';
import { didYouMean } from '../common/names.ts';
import type { ProblemCode } from './problem.ts';
import type { Path, YamlDocument } from './read-yaml.ts';
import type { Span } from './source-text.ts';

type Issue = z.core.$ZodIssue;

interface PlacedMessage {
  span: Span;
  code: ProblemCode;
  message: string;
}

/** Turns schema issues into messages at their places in the document. */
export function placeIssues(document: YamlDocument, issues: readonly Issue[], at: Path): PlacedMessage[] {
  return withoutConsequences(issues).flatMap((issue) => placeIssue(document, issue, [...at, ...issue.path]));
}

/** Drops custom issues beside unknown keys: the check fails because the key is misspelt. */
function withoutConsequences(issues: readonly Issue[]): Issue[] {
  const misspelt = issues.filter((issue) => issue.code === 'unrecognized_keys').map((issue) => issue.path.join('.'));
  return issues.filter((issue) => issue.code !== 'custom' || !misspelt.includes(issue.path.join('.')));
}

function placeIssue(document: YamlDocument, issue: Issue, path: Path): PlacedMessage[] {
  if (issue.code === 'unrecognized_keys') {
    const messages = issue.message.split('\n');
    return issue.keys.slice(0, messages.length).map((key, index) => ({
      span: document.keySpanOf([...path, key]),
      code: 'unknown-key',
      message: messages[index] ?? issue.message,
    }));
  }
  if (issue.code === 'invalid_union') {
    const branch = issue.errors.find((issues) => issues.some(isAboutContent));
    if (branch) return placeIssues(document, branch, path);
  }
  if (issue.code === 'invalid_type' && issue.expected === 'never') {
    return [{ span: document.keySpanOf(path), code: 'not-supported', message: issue.message }];
  }
  if (path.length > 0 && !document.has(path)) {
    const message = `missing key "${String(path.at(-1))}"; ${messageOf(issue, undefined)}`;
    return [{ span: document.keySpanOf(path), code: 'missing-key', message }];
  }
  return [{ span: document.spanOf(path), code: 'value', message: messageOf(issue, document.valueAt(path)) }];
}

/** True if the value matches a branch of a union except for something within it. */
export function isAboutContent(issue: Issue): boolean {
  if (issue.code === 'invalid_union' && issue.errors.flat().some(isAboutContent)) return true;
  return issue.path.length > 0 || issue.code === 'custom' || issue.code === 'unrecognized_keys';
}

/** The message of an issue; `found` is the value at its place. */
export function messageOf(issue: Issue, found: unknown): string {
  if (issue.code === 'invalid_value') {
    const values = issue.values.map(String);
    const hasOwnMessage = !issue.message.startsWith('Invalid');
    const isOther = typeof found === 'string' && !values.includes(found);
    const suggestion = isOther ? didYouMean(found, values) : '';
    return `${hasOwnMessage ? issue.message : `expected ${values.join(' or ')}`}${suggestion}`;
  }
  if (issue.code === 'invalid_union' && typeof found === 'string') {
    return `${issue.message}${didYouMean(found, issue.errors.flat().flatMap(valuesOf))}`;
  }
  const hasOwnMessage = issue.code !== 'invalid_type' || !issue.message.startsWith('Invalid');
  return `${hasOwnMessage ? issue.message : `expected ${issue.expected}`}${writeInstead(issue, found)}`;
}

function valuesOf(issue: Issue): string[] {
  return issue.code === 'invalid_value' ? issue.values.map(String) : [];
}

const NUMBER = /^\d{1,9}(\.\d{1,9})?$/;
const TRUE = ['true', 'yes', 'on'];
const FALSE = ['false', 'no', 'off'];

/** `; write 8 without quotes`: the value in the expected type, or nothing if the intention is unclear. */
function writeInstead(issue: Issue, found: unknown): string {
  if (issue.code !== 'invalid_type') return '';
  switch (issue.expected) {
    case 'number':
    case 'int':
      return typeof found === 'string' && NUMBER.test(found) ? `; write ${found} without quotes` : '';
    case 'boolean':
      return asBoolean(found);
    case 'array':
      return asList(found);
    case 'string':
      return typeof found === 'number' ? withUnit(found, issue.message) : '';
    default:
      return '';
  }
}

function asBoolean(found: unknown): string {
  const word = typeof found === 'string' ? found.toLowerCase() : '';
  if (TRUE.includes(word)) return '; write true';
  return FALSE.includes(word) ? '; write false' : '';
}

function asList(found: unknown): string {
  if (typeof found === 'string' && found !== '' && found.length <= 60) return `; write [${JSON.stringify(found)}]`;
  return typeof found === 'object' && found !== null ? '; write "- " before each entry' : '';
}

function withUnit(found: number, message: string): string {
  if (message.includes('a duration') && Number.isInteger(found) && found > 0)
    return `; write a unit, such as ${found}s or ${found}m`;
  if (!message.includes('a share') || !(found > 0) || found > 100) return '';
  return `; write "${Math.round(found <= 1 ? found * 100 : found)}%"`;
}
