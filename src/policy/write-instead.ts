import type { z } from 'zod';

const NUMBER = /^\d{1,9}(\.\d{1,9})?$/;
const TRUE = ['true', 'yes', 'on'];
const FALSE = ['false', 'no', 'off'];

/** `; write 8 without quotes`: the same in the type that is wanted, where it is plain what was meant; else nothing. */
export function writeInstead(issue: z.core.$ZodIssue, found: unknown): string {
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
