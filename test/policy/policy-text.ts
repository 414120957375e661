import type { SchedulePolicy } from '../../src/domain/policy/kinds/schedule.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { type PolicySetResult, parsePolicyFiles } from '../../src/policy/parse.ts';
import { formatProblem } from '../../src/policy/problem.ts';

/** A file with one valid schedule, in which a test replaces what it is about. */
export const VALID = `version: 1
timezone: Europe/Berlin
owner: team-web
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["web-*"] }
    windows:
      - at: Mon-Fri 08:00-18:30
        size: 1-4
        suspend_after: never
    otherwise: leave
`;

export function parse(text: string): PolicySetResult {
  return parsePolicyFiles([{ path: 'web.yaml', text }]);
}

/** {@link VALID} with one part replaced; the part must be there. */
export function valid(part = '', replacement = ''): string {
  if (!VALID.includes(part)) throw new Error(`not in the text: ${part}`);
  return VALID.replace(part, () => replacement);
}

/** The problems as people read them; without colours. */
export function problemsOf(text: string): string[] {
  const result = parse(text);
  return result.ok ? [] : result.problems.map((problem) => formatProblem(problem));
}

/** `line:column message` of each problem. */
export function messagesOf(text: string): string[] {
  const result = parse(text);
  return result.ok ? [] : result.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

/** Those of several policies that are schedules. */
export function schedulesOf(policies: readonly Policy[]): SchedulePolicy[] {
  return policies.filter((policy) => policy.kind === 'schedule');
}
