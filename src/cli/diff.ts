import { Command, Option } from 'commander';
import type { CompiledPolicies } from '../domain/policy/compiled-policies.ts';
import type { Settings } from '../settings/settings.ts';
import type { Comparison } from './diff/compare.ts';
import type { promisedOf } from './diff/promised.ts';
import type { RenderOptions } from './diff/render.ts';
import { UserError } from './fail.ts';
import { type FilterFlags, filtered, filtersByBranch, withFilterFlags } from './filter.ts';
import type { SpanFlags } from './forecast/span.ts';
import { type LiveFlag, withLiveFlag } from './live-flag.ts';
import { jsonText, writeErrLine, writeOut } from './output.ts';
import { parsePastDays } from './past/flags.ts';

interface DiffFlags extends SpanFlags, FilterFlags, LiveFlag {
  config?: string;
  apiUrl?: string;
  queueUrl?: string;
  fleet?: string;
  usage?: string;
  operations?: string;
  pastDays: number;
  zone?: string;
  format: 'text' | 'json' | 'markdown';
  json?: boolean;
}

const EXAMPLES = `
Examples:
  $ ebb diff old/policies policies                   for the next seven days of the live fleet
  $ ebb diff old/policies policies --fleet fleet.yaml --format markdown > comment.md
  the changes of a branch, in the checks of a pull request:
  $ git worktree add ../main origin/main && ebb diff ../main/policies policies --fleet fleet.yaml

OLD and NEW are policy files, folders or globs. It compares the two forecasts of every compute; ebb forecast
lists their limits. A snapshot of the fleet (ebb snapshot) needs no key.
Exit code 0: fine, with or without a change. 1: an error, or a part of the fleet that can't be read.`;

/** `ebb diff OLD NEW`: the effect of a change of policies, for its reviewers. */
export function diffCommand(): Command {
  return withFilterFlags(withLiveFlag(new Command('diff')))
    .description('compare two policy sets: which computes change, and when')
    .argument('<OLD>', 'policies as they are: a file, folder or glob')
    .argument('<NEW>', 'policies as they would be')
    .option('--config <file>', 'settings file (default: ebb.yaml if it is there)')
    .option('--api-url <url>', 'control API (EBB_API_URL)')
    .option('--queue-url <url>', 'where daemons store what they know (EBB_QUEUE_URL; default: embedded:.ebb)')
    .option('--fleet <file>', 'a snapshot, YAML or JSON, instead of the live fleet: no key is needed')
    .option(
      '--usage <file>',
      'usage.csv of `ebb usage export`, for what is expected (default: what daemons have collected)',
    )
    .option('--operations <file>', 'operations.csv of `ebb usage export`, for what timeouts save; needs --fleet')
    .option(
      '--past-days <n>',
      'how far the findings of --json look back, as --days of ebb recommend, 2 to 180 days',
      parsePastDays,
      28,
    )
    .option('--days <n>', 'how many days, 1 to 366 (default: 7)')
    .option('--from <iso>', 'where it starts; without offset local time of --zone (default: now)')
    .option('--to <iso>', 'where it ends, instead of --days')
    .option('--zone <name>', 'IANA zone of days and hours (default: that of the first window, else UTC)')
    .addOption(new Option('--format <format>', 'how to print').choices(['text', 'json', 'markdown']).default('text'))
    .option('--json', 'the same as --format json')
    .addHelpText('after', EXAMPLES)
    .action(diff);
}

async function diff(oldPath: string, newPath: string, flags: DiffFlags): Promise<void> {
  const {
    comparing,
    displayZone,
    foresee,
    readForForecast,
    readSpan,
    foreseeByPast,
    settingsOrFail,
    unknownBudgetNotes,
    withLeaderDecisions,
    withProgress,
  } = await parts();
  const { config: configFile, apiUrl, queueUrl } = flags;
  const settings = settingsOrFail({ configFile, flags: { apiUrl, queueUrl } });
  const before = await policiesIn(oldPath, newPath, settings);
  const after = await policiesIn(newPath, oldPath, settings);
  const nowMs = Date.now();
  const zone = displayZone(flags.zone, [after.set, before.set]);
  const span = readSpan(flags, { zone, nowMs });
  const selectsByBranch = before.selectsByBranch || after.selectsByBranch || filtersByBranch(flags);
  const read = await withProgress(({ fleet }) =>
    readForForecast({
      ...{ settings, fleetFile: flags.fleet, live: flags.live },
      ...{ selectsByBranch, nowMs, onProgress: fleet },
    }),
  );
  if (!read.ok) throw new UserError(read.problem);
  const { budgets, knownAtMs, missing, notes } = read.value;
  const computes = read.value.subjects.map(({ compute }) => compute);
  const subjects = filtered(read.value.subjects, flags, { settings, policies: after });
  const files = { usageFile: flags.usage, operationsFile: flags.operations, fleetFile: flags.fleet };
  const { projects, takenAtMs, isStored } = read.value;
  const options = { settings, ...files, takenAtMs, isStored, computes, projects, nowMs };
  const [old, changed] = [before, after].map((compiled) =>
    withLeaderDecisions(compiled, { ...read.value, settings, span }),
  ) as [CompiledPolicies, CompiledPolicies];
  const [were = [], are = []] = await foreseeByPast(options, (known) =>
    [old, changed].map((policies) =>
      foresee({
        ...{ ...span, ...known, knownAtMs, policies, subjects },
        fleet: read.value.subjects,
        disruption: settings.disruption,
      }),
    ),
  );
  const comparison = comparing.compare({ policies: old, outlooks: were }, { policies: changed, outlooks: are }, span);
  const unknown = unknownBudgetNotes([before.set, after.set], budgets);
  for (const line of [...notes, ...unknown, ...missing.map((line) => `left out: ${line}`)]) {
    writeErrLine(`note: ${line}`);
  }
  const format = flags.json ? 'json' : flags.format;
  const shown =
    format === 'json'
      ? await withPromises(comparison, { settings, flags: { ...flags, days: flags.pastDays } })
      : comparison;
  writeOut(`${await rendered(shown, { ...span, zone, format })}\n`);
  if (missing.length > 0) process.exitCode = 1;
}

/** With the findings of `ebb recommend` that the changes make; programs get them one by one, people the saving of all. */
async function withPromises(
  comparison: Comparison,
  options: Omit<Parameters<typeof promisedOf>[0], 'changes'>,
): Promise<Comparison> {
  const { promisedOf } = await import('./diff/promised.ts');
  const { findings, notes } = await promisedOf({ ...options, changes: comparison.changes });
  for (const line of notes) writeErrLine(`note: ${line}`);
  return { ...comparison, promised: findings };
}

/** The policies of one path, read as the teams in it or in the other say. */
async function policiesIn(path: string, comparedWith: string, settings: Settings): Promise<CompiledPolicies> {
  const { compilePolicies, loadOrFail, teamsIn } = await parts();
  const teams = await teamsIn(path, comparedWith, settings);
  return compilePolicies(await loadOrFail([path], { ...settings, teams }, { isWhole: false }));
}

async function parts() {
  const [domain, comparing, orFail, reading, zones, outlooks, spans, byPast, budgets, copies, progress] =
    await Promise.all([
      import('../domain/policy/compiled-policies.ts'),
      import('./diff/compare.ts'),
      import('./or-fail.ts'),
      import('../compose/situation.ts'),
      import('./forecast/local-time.ts'),
      import('./forecast/outlook.ts'),
      import('./forecast/span.ts'),
      import('./forecast/by-past.ts'),
      import('./forecast/budget-steps.ts'),
      import('./diff/teams-of-copy.ts'),
      import('./past/progress.ts'),
    ]);
  return {
    ...domain,
    comparing,
    ...orFail,
    ...reading,
    ...zones,
    ...outlooks,
    ...spans,
    ...byPast,
    ...budgets,
    ...copies,
    ...progress,
  };
}

async function rendered(
  comparison: Comparison,
  { format, ...options }: RenderOptions & { format: DiffFlags['format'] },
): Promise<string> {
  if (format === 'json') {
    const { diffJson } = await import('./diff/to-json.ts');
    return jsonText(diffJson(options, comparison));
  }
  const { diffMarkdown, diffText } = await import('./diff/render.ts');
  return format === 'markdown' ? diffMarkdown(comparison, options) : diffText(comparison, options);
}
