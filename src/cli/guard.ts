import { Argument, Command } from 'commander';
import type { GuardAnswer } from '../app/guards/ask.ts';
import type { Compute } from '../domain/compute/compute.ts';
import { formatted } from '../domain/guards/verdict.ts';
import type { GuardPolicy } from '../domain/policy/kinds/guard.ts';
import { UserError } from './fail.ts';
import { type CommonFlags, FLAGS, withSourceFlags } from './flags.ts';
import { jsonText, writeNotes, writeOut } from './output.ts';

const EXAMPLES = `
Examples:
  $ ebb guard test api-latency
  $ ebb guard test api-latency --fleet fleet.yaml --json

It asks the source of the guard now, from this machine, and shows what it says of each selected compute. A daemon asks the
same every 30 seconds. Nothing is written. docs/how-to-guards.md
Exit code 0: each awake compute is healthy or bad. 1: an error, or an awake compute of which the guard can't say.`;

export function guardCommand(): Command {
  return withSourceFlags(new Command('guard'))
    .option(...FLAGS.live)
    .addArgument(new Argument('<ACTION>', 'what to do').choices(['test']))
    .argument('<GUARD>', 'the policy of kind guard')
    .option(...FLAGS.fleet)
    .option(...FLAGS.json)
    .addHelpText('after', EXAMPLES)
    .action((_action: 'test', name: string, flags: CommonFlags) => test(name, flags));
}

async function test(name: string, flags: CommonFlags): Promise<void> {
  const [{ compilePolicies }, { policiesOfKind }, { testGuard }, { settingsAndPolicies }, { readForecastStart }] =
    await Promise.all([
      import('../domain/policy/compiled-policies.ts'),
      import('../domain/policy/kinds/kinds.ts'),
      import('../compose/sources-and-receivers.ts'),
      import('./or-fail.ts'),
      import('./read-fleet.ts'),
    ]);
  const { settings, policies: set } = await settingsAndPolicies(flags);
  const guards = policiesOfKind(set.policies, 'guard');
  const guard = guards.find((one) => one.name === name);
  const names = guards.map((one) => one.name).join(', ');
  if (!guard) throw new UserError(`no guard is called ${name}; ${names ? `there are ${names}` : 'there is none'}`);
  const policies = compilePolicies(set);
  const nowMs = Date.now();
  const start = await readForecastStart(settings, flags, { selectsByBranch: policies.selectsByBranch, nowMs });
  const index = set.policies.indexOf(guard);
  const computes = start.subjects
    .map(({ compute }) => compute)
    .filter((compute) => policies.selects(index, compute, nowMs));
  writeNotes(start);
  const answer = await testGuard(settings, { guard, set, computes, nowMs });
  writeOut(`${flags.json ? jsonText(answerJson(guard, computes, answer)) : answerText(guard, computes, answer)}\n`);
  const isUnknown = computes.some(
    ({ computeId, state }) => state !== 'idle' && answer.verdicts.get(computeId)?.state === 'unknown',
  );
  if (answer.error || isUnknown || computes.length === 0) process.exitCode = 1;
}

function answerJson({ name, query }: GuardPolicy, computes: readonly Compute[], { error, verdicts }: GuardAnswer) {
  return {
    guard: name,
    query,
    error: error ? { code: error.code, message: error.message } : null,
    computes: computes.map(({ projectId, projectName, computeId, state: awake }) => {
      const { state, value, limit, message } = verdicts.get(computeId) ?? { state: 'unknown', message: '' };
      return {
        project_id: projectId,
        project_name: projectName,
        compute_id: computeId,
        awake: awake !== 'idle',
        verdict: state,
        value: numberOf(value),
        limit: numberOf(limit),
        message,
      };
    }),
  };
}

/** JSON has no infinite numbers, so they become texts. */
function numberOf(value: number | undefined): number | string | null {
  if (value === undefined) return null;
  return Number.isFinite(value) ? value : formatted(value);
}

function answerText(
  { name, query }: GuardPolicy,
  computes: readonly Compute[],
  { error, verdicts }: GuardAnswer,
): string {
  if (error) return `${name}: no answer: ${error.message} (${error.code})\n  ${query}`;
  if (computes.length === 0) return `${name} selects no compute`;
  const lines = computes.map(({ projectName, computeId, state }) => {
    const verdict = verdicts.get(computeId);
    const asleep = state === 'idle' ? ' (asleep: it is lowered without asking)' : '';
    return `${verdict?.state ?? 'unknown'}  ${projectName} / ${computeId}: ${verdict?.message ?? ''}${asleep}`;
  });
  const counts = (['healthy', 'bad', 'unknown'] as const).map(
    (state) => `${[...verdicts.values()].filter((one) => one.state === state).length} ${state}`,
  );
  return [...lines, '', `${name}: ${counts.join(', ')}`].join('\n');
}
