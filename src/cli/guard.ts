import { Command } from 'commander';
import type { GuardAnswer } from '../app/guards/ask.ts';
import { printable } from '../common/safe-text.ts';
import type { Compute } from '../domain/compute/compute.ts';
import { numberJson } from '../domain/guards/verdict.ts';
import type { GuardPolicy } from '../domain/policy/kinds/guard.ts';
import { type CommonFlags, FLAGS, MAX_PAST_DAYS, pastDays, withSourceFlags } from './flags.ts';
import type { ReplayFlags } from './guard/run-replay.ts';
import { jsonText, writeNotes, writeOut } from './output.ts';

const TEST_EXAMPLES = `
Examples:
  $ ebb guard test api-latency
  $ ebb guard test api-latency --fleet fleet.yaml --json

It asks the source of the guard now, from this machine, and shows the verdict on each selected compute. A daemon asks the
same every 30 seconds. Nothing is written. docs/how-to-guards.md
Exit code 0: each awake compute is healthy or bad. 1: an error, or an awake compute whose verdict is unknown.`;

const REPLAY_EXAMPLES = `
Examples:
  $ ebb guard replay api-latency
  $ ebb guard replay api-latency --days 7 --policies draft.yaml
  $ ebb guard replay api-latency --json | jq '.lowerings[] | select(.outcome == "harm")'

For each lowering in ebb's audit: the verdict before it, what the guard would have found after it, and what it would have done,
by the past samples of its source, as if a daemon had always enforced the guard. It reads the store, or asks the daemon that
has it open, and reads past operations as ebb awake does. Nothing is written. docs/how-to-guards.md`;

export function guardCommand(): Command {
  const command = new Command('guard').addHelpText('after', `${TEST_EXAMPLES}\n${REPLAY_EXAMPLES}`);
  withSourceFlags(command.command('test'))
    .description('ask a guard for its present verdict on each compute')
    .option(...FLAGS.live)
    .argument('<GUARD>', 'the policy of kind guard')
    .option(...FLAGS.fleet)
    .option(...FLAGS.json)
    .addHelpText('after', TEST_EXAMPLES)
    .action(test);
  withSourceFlags(command.command('replay'))
    .description('show what a guard would have done about past lowerings')
    .option(...FLAGS.live)
    .argument('<GUARD>', 'the policy of kind guard')
    .option('--days <n>', `how far to look back, 1 to ${MAX_PAST_DAYS} days`, pastDays(1), 28)
    .option('--url <url>', 'ask the daemon there for the audit, with the token in EBB_TOKEN')
    .option('--operations <file>', 'operations.csv instead of the API; needs --fleet')
    .option('--fleet <file>', 'a snapshot, YAML or JSON, for --operations')
    .option(...FLAGS.json)
    .addHelpText('after', REPLAY_EXAMPLES)
    .action(async (name: string, flags: ReplayFlags) => {
      const { runReplay } = await import('./guard/run-replay.ts');
      await runReplay(name, flags);
    });
  return command;
}

async function test(name: string, flags: CommonFlags): Promise<void> {
  const [{ compilePolicies }, { testGuard }, { guardNamed, settingsAndPolicies }, { readForecastStart }] =
    await Promise.all([
      import('../domain/policy/compiled-policies.ts'),
      import('../compose/sources-and-receivers.ts'),
      import('./or-fail.ts'),
      import('./read-fleet.ts'),
    ]);
  const { settings, policies: set } = await settingsAndPolicies(flags);
  const guard = guardNamed(set, name);
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
        value: numberJson(value),
        limit: numberJson(limit),
        message,
      };
    }),
  };
}

function answerText(
  { name, query }: GuardPolicy,
  computes: readonly Compute[],
  { error, verdicts }: GuardAnswer,
): string {
  if (error) return `${name}: no answer: ${printable(error.message)} (${error.code})\n  ${query}`;
  if (computes.length === 0) return `${name} selects no compute`;
  const lines = computes.map(({ projectName, computeId, state }) => {
    const verdict = verdicts.get(computeId);
    const asleep = state === 'idle' ? ' (asleep: it is lowered without asking)' : '';
    return printable(
      `${verdict?.state ?? 'unknown'}  ${projectName} / ${computeId}: ${verdict?.message ?? ''}${asleep}`,
    );
  });
  const counts = (['healthy', 'bad', 'unknown'] as const).map(
    (state) => `${[...verdicts.values()].filter((one) => one.state === state).length} ${state}`,
  );
  return [...lines, '', `${name}: ${counts.join(', ')}`].join('\n');
}
