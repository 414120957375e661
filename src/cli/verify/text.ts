import { stringify } from 'yaml';
import type { FoundFact, VerifyReport } from '../../app/verify/verify.ts';
import type { FactName } from '../../domain/compute/account-facts.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { markdownCode, markdownText } from '../markdown.ts';
import { readVersion } from '../root.ts';
import { plainTable } from '../terminal.ts';

const QUESTIONS: Record<FactName, string> = {
  idle_resize: 'a new size on a sleeping compute',
  timeout_change: 'a new timeout alone on an awake compute',
  list_updated_at: 'the project list at a change',
  compute_updated_at: 'updated_at of the compute at a change',
  last_active: 'last_active after a statement',
  restart_drops: 'what a restart drops',
  limits: 'the rate limit in answers',
};

const HEAD = ['fact', 'expected', 'observed', 'verdict'];

function cells({ fact, expected, observed, seconds, verdict, why }: FoundFact): string[] {
  const after = seconds === undefined ? '' : ` (${seconds} s)`;
  const verdictText = verdict.replaceAll('_', ' ');
  return [
    QUESTIONS[fact],
    expected,
    observed ? `${observed}${after}` : '',
    why === undefined ? verdictText : `${verdictText}: ${why}`,
  ];
}

function summary({ tookMs, requests }: VerifyReport): string {
  return `ebb ${readVersion()}: ${Math.round(tookMs / 1000)} s, ${requests} requests. The compute has its earlier settings again.`;
}

export function verifyText(report: VerifyReport): string {
  const isObserved = report.facts.some(({ observed }) => observed !== undefined);
  const block = [
    '',
    'For ebb.yaml, at the top or in the entry of the account, so that ebb uses them:',
    verifiedYaml(report),
  ];
  return [plainTable(HEAD, report.facts.map(cells)), '', summary(report), ...(isObserved ? block : [])].join('\n');
}

/** The observed facts, for `verified` in ebb.yaml. */
export function verifiedYaml({ facts }: VerifyReport): string {
  const observed = facts.flatMap(({ fact, observed: value }) => (value === undefined ? [] : [[fact, value] as const]));
  return stringify({ verified: Object.fromEntries(observed) }).trimEnd();
}

/** A report for public issues, without ids and names. */
export function verifyMarkdown(report: VerifyReport): string {
  const rows = report.facts.map((fact) => {
    const [question = '', ...rest] = cells(fact);
    return `| ${[markdownCode(fact.fact), question, ...rest].map((cell, at) => (at === 0 ? cell : markdownText(cell))).join(' | ')} |`;
  });
  return [
    '### ebb verify',
    '',
    '| | fact | expected | observed | verdict |',
    '|---|---|---|---|---|',
    ...rows,
    '',
    summary(report),
  ].join('\n');
}

/** Instants in ISO 8601, seconds rounded; no ids. */
export function verifyJson({ atMs, tookMs, requests, facts }: VerifyReport) {
  return {
    ebb: readVersion(),
    at: isoInstant(atMs),
    took_seconds: Math.round(tookMs / 1000),
    requests,
    facts: facts.map(({ fact, expected, verdict, observed, seconds, why, experiment }) => ({
      fact,
      expected,
      verdict,
      observed: observed ?? null,
      shown_after_seconds: seconds ?? null,
      why: why ?? null,
      experiment: experiment
        ? {
            at: isoInstant(experiment.atMs),
            took_seconds: Math.round(experiment.tookMs / 1000),
            requests: experiment.requests.map(({ atMs: sentAtMs, route, status }) => ({
              at: isoInstant(sentAtMs),
              route,
              status: status ?? null,
            })),
          }
        : null,
    })),
  };
}
