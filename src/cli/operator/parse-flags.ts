/** Parses flags: sizes, durations and selectors have the form that they have in policies. */
import { InvalidArgumentError } from 'commander';
import type { Size as DomainSize } from '../../domain/compute/compute.ts';
import { type Selector as DomainSelector, parseSelector, wildcardProblem } from '../../domain/policy/selector.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { Selector } from '../../policy/schema/policy-base.ts';
import { parseDurationMs, Size, SuspendAfter } from '../../policy/schema/scalars.ts';
import { UserError } from '../fail.ts';

const MAX_DAYS = 90;
const KEYS = ['accounts', 'projects', 'branches', 'computes', 'regions', 'types', 'branch_roles', 'share'] as const;

export function parseSize(text: string): DomainSize {
  return parsed(Size.safeParse(text));
}

/** A suspend timeout in seconds; −1 is never. */
export function parseSuspendAfter(text: string): number {
  return parsed(SuspendAfter.safeParse(text));
}

export function parseDurationSeconds(text: string): number {
  const ms = parseDurationMs(text) ?? 0;
  if (ms >= 1000 && ms <= MAX_DAYS * DAY_MS) return ms / 1000;
  throw new InvalidArgumentError('expected a duration of 1s to 90d, such as "90s", "2h", "1h30m".');
}

export function parseCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= 1000) return count;
  throw new InvalidArgumentError('expected a whole number from 1 to 1000.');
}

/** Parses a number of computes, which may be larger than {@link parseCount} accepts. */
export function parseComputes(text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(count)) return count;
  throw new InvalidArgumentError('expected a whole number.');
}

/** The parser of an option that can be given several times. */
export function collectValues(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** Parses texts such as `projects=web-*,!web-legacy`. All must match, as in a policy. */
export function selectorOf(texts: readonly string[]): DomainSelector<'request'> {
  const keys = texts.map((text) => {
    const [key = '', list] = text.split(/=(.*)/s, 2);
    if (list === undefined || !KEYS.some((known) => known === key)) {
      throw new UserError(`--select ${JSON.stringify(text)}: write KEY=GLOB,GLOB; keys are ${KEYS.join(', ')}`);
    }
    return [key, key === 'share' ? list : list.split(',').map((glob) => glob.trim())];
  });
  const selector = Selector.safeParse({ ...Object.fromEntries(keys), min_age: '0s' });
  if (!selector.success) throw new UserError(`--select: ${selector.error.issues[0]?.message}`);
  const problem = wildcardProblem(selector.data);
  if (problem !== undefined) throw new UserError(`--select: ${problem}`);
  const outcome = parseSelector(selector.data, 'request');
  if (outcome.ok) return outcome.value;
  throw new UserError(`--select: ${outcome.problem}`);
}

function parsed<T>(
  result: { success: true; data: T } | { success: false; error: { issues: { message: string }[] } },
): T {
  if (result.success) return result.data;
  throw new InvalidArgumentError(`${result.error.issues[0]?.message}.`);
}
