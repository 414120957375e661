import { lintPolicySet } from '../src/policy/lint/lint.ts';
import { type PolicyFileText, parsePolicyFiles } from '../src/policy/parse.ts';
import { medianMs, printTable } from './figures.ts';

const SETS = [100, 1_000] as const;
const POLICIES_OF_ONE_TEAM = 20;
const NOON = Date.parse('2026-03-02T12:00:00Z');
const ZONES = ['Europe/Berlin', 'America/New_York', 'Asia/Tokyo', 'Australia/Lord_Howe'];

/**
 * How long it takes to read and lint a set: one file for each team, windows that differ everywhere. With a priority for each policy
 * of a team there is nothing to find; with one for all every team contradicts itself, the most that there is to look for.
 */
export async function run(): Promise<void> {
  const rows: string[][] = [];
  for (const [policies, isOrdered] of SETS.flatMap((size) => [[size, true] as const, [size, false] as const])) {
    const files = Array.from({ length: policies / POLICIES_OF_ONE_TEAM }, (_, team) => fileOf(team, isOrdered));
    const parsed = parsePolicyFiles(files);
    if (!parsed.ok) throw new Error(parsed.problems[0]?.message);
    const input = { policies: parsed.set.policies, written: parsed.written, nowMs: NOON };
    const parseMs = await medianMs(5, () => void parsePolicyFiles(files));
    const lintMs = await medianMs(5, () => void lintPolicySet(input));
    const findings = lintPolicySet(input).length;
    rows.push([
      policies.toLocaleString('en'),
      `${parseMs.toFixed(0)} ms`,
      `${lintMs.toFixed(0)} ms`,
      `${(parseMs + lintMs).toFixed(0)} ms`,
      String(findings),
    ]);
  }
  printTable(['policies', 'read', 'lint', 'both', 'findings'], rows);
}

function fileOf(team: number, isOrdered: boolean): PolicyFileText {
  const policies = Array.from({ length: POLICIES_OF_ONE_TEAM }, (_, index) => {
    const policy = policyOf(team, index);
    return isOrdered ? `${policy}    priority: ${index}\n` : policy;
  });
  const zone = ZONES[team % ZONES.length];
  const head = `version: 1\ntimezone: ${zone}\ncalendars: { off: { country: DE, state: BE } }\npolicies:\n`;
  return { path: `policies/team-${team}.yaml`, text: head + policies.join('') };
}

function policyOf(team: number, index: number): string {
  const minute = String((team + index * 3) % 60).padStart(2, '0');
  const branches = index % 2 === 0 ? `["main", "release-${index}-*"]` : `["pr-${index}-*", "!pr-${index}-keep-*"]`;
  return `  - name: team-${team}-${index}
    kind: schedule
    select: { projects: ["team-${team}-*", "!*-legacy"], branches: ${branches} }
    windows:
      - at: Mon-Fri ${index % 2 === 0 ? '08' : '09'}:${minute}-18:30
        except: [off]
        size: 1-4
        suspend_after: never
      - at: [Sat 10:${minute}-14:00, { cron: "${minute} 4 * * 0", for: 2h }]
        size: ${index % 3 === 0 ? 1 : 2}
    otherwise: ${index % 5 === 0 ? 'leave' : '{ size: 0.25-1, suspend_after: 5m }'}
`;
}
