import { Command, InvalidArgumentError, Option } from 'commander';
import type { Finding } from '../domain/recommend/finding.ts';
import { type FilterFlags, filtered, withFilterFlags } from './filter.ts';
import { parseFor } from './operator/parse-flags.ts';
import { jsonText, writeErrLine, writeOut } from './output.ts';
import { type PastFlags, printPastAsides, withPastFlags } from './past/flags.ts';
import type { Past } from './past/read-past.ts';

interface RecommendFlags extends PastFlags, FilterFlags {
  policies?: string;
  minUsd?: number;
  /** Seconds. */
  coldStartWorth?: number;
  write?: string;
  format: 'text' | 'json' | 'markdown';
}

const EXAMPLES = `
Examples:
  $ ebb recommend                                    the last 28 days of the whole fleet
  $ ebb recommend --days 90 --min-usd 5 --format markdown
  $ ebb recommend --write recommended && ebb diff policies recommended
  $ ebb recommend --operations operations.csv --fleet fleet.yaml --usage usage.csv

A list with a price, largest first: timeouts, minima and maxima that don't fit, computes that never sleep or that nobody
uses, left-over preview branches, and causes as in ebb awake. Each has a figure that says what it promises, and the
policy that does it. It only reads, needs neither a daemon nor policies, and wakes no compute. Prices need the plan of
the account: "plan: scale" in ebb.yaml. docs/recommend.md explains the method.
Exit code 0: fine. 1: an error, or a part of the fleet that can't be read.`;

/** `ebb recommend`: finds savings, with the policies for them. */
export function recommendCommand(): Command {
  return withFilterFlags(withPastFlags(new Command('recommend')))
    .description('show what would cost less, with the policies for it')
    .argument('[COMPUTE...]', 'ids or names of computes or projects, also globs (default: all)')
    .option('--policies <paths>', 'present policies, which are not contradicted (EBB_POLICIES; default: policies)')
    .option('--min-usd <dollars>', 'only what may save so much a month', parseDollars)
    .option(
      '--cold-start-worth <duration>',
      'how long awake a start is worth (default: as in ebb.yaml, else 5m)',
      parseFor,
    )
    .option('--write <dir>', 'write policies into a new or empty folder')
    .addOption(new Option('--format <format>', 'how to print').choices(['text', 'json', 'markdown']).default('text'))
    .option('--json', 'the same as --format json')
    .addHelpText('after', EXAMPLES)
    .action(runRecommend);
}

function parseDollars(text: string): number {
  if (/^\d{1,9}(\.\d{1,2})?$/.test(text)) return Number(text);
  throw new InvalidArgumentError('write dollars such as 5 or 2.50');
}

async function runRecommend(names: string[], flags: RecommendFlags): Promise<void> {
  const { findingLines, firstOf, holidaysOf, planNotes, readFacts, readPast, recommend, ...rest } = await parts();
  const { readablePolicies, recommendFacts, selectComputes, settingsOrFail } = rest;
  const { config: configFile, apiUrl, policies, coldStartWorth } = flags;
  const settings = settingsOrFail({ configFile, flags: { apiUrl, policies } });
  const compiled = await readablePolicies(settings);
  const selected = (computes: Past['computes']) =>
    filtered(selectComputes(computes, names), flags, { settings, policies: compiled });
  const options = { holidaysOf, ...(coldStartWorth !== undefined && { coldStartWorthMs: 1000 * coldStartWorth }) };
  const onNewest = async ({ computes }: Past) => {
    const facts = recommendFacts(settings, selected(computes), { policies: compiled });
    const lines = findingLines(firstOf(recommend(facts, options).filter((one) => isWanted(one, flags))));
    if (lines.length === 0) return;
    writeErrLine('first findings, by the newest operations of each project; the rest is being read:');
    for (const line of lines) writeErrLine(`  ${line}`);
  };
  const past = await readPast(settings, flags, { branches: true, onNewest });
  const stored = flags.operations === undefined ? await readFacts(settings, 'holds', past.toMs) : undefined;
  const facts = recommendFacts(settings, selected(past.computes), {
    policies: compiled,
    holds: stored?.facts.holds ?? [],
  });
  const findings = recommend(facts, options).filter((finding) => isWanted(finding, flags));
  printPastAsides({ ...past, notes: [...planNotes(past), ...past.notes, ...(stored?.notes ?? [])] });
  if (flags.write !== undefined) await writePolicies(flags.write, findings, past);
  writeOut(`${await rendered(findings, past, flags)}\n`);
}

async function parts() {
  const [
    recommending,
    first,
    { readFacts },
    { planNotes, readPast },
    { settingsOrFail },
    { recommend },
    { selectComputes },
    days,
  ] = await Promise.all([
    import('./recommend/facts.ts'),
    import('./init/first-findings.ts'),
    import('../compose/situation.ts'),
    import('./past/read-past.ts'),
    import('./or-fail.ts'),
    import('../domain/recommend/recommend.ts'),
    import('./select-named.ts'),
    import('../policy/calendars/public-holidays.ts'),
  ]);
  return {
    ...recommending,
    ...first,
    ...days,
    planNotes,
    readFacts,
    readPast,
    settingsOrFail,
    recommend,
    selectComputes,
  };
}

/** A finding without a price is never below the minimum, since its saving is unknown. */
function isWanted({ savesUsd }: Finding, flags: RecommendFlags): boolean {
  return flags.minUsd === undefined || savesUsd === undefined || savesUsd.high >= flags.minUsd;
}

async function writePolicies(folder: string, findings: readonly Finding[], { computes }: Past): Promise<void> {
  const [{ policyFiles }, { refuseIfThere, writeFiles }] = await Promise.all([
    import('../app/recommend/policies.ts'),
    import('./init/files.ts'),
  ]);
  const files = policyFiles(
    findings,
    computes.map(({ compute }) => compute),
  );
  const paths = files.map(({ path }) => path);
  refuseIfThere(folder, paths, (them) => `remove ${them}, or name another folder`);
  await writeFiles(folder, files);
  const what =
    paths.length === 0
      ? 'no finding has a policy: nothing was written'
      : `written: ${paths.map((path) => `${folder}/${path}`).join(', ')}`;
  writeErrLine(what);
  const byHand = findings.filter(({ policy }) => policy === undefined).length;
  if (byHand > 0) writeErrLine(`without a policy, for people to look at: ${byHand} of ${findings.length} findings`);
}

async function rendered(findings: readonly Finding[], past: Past, { json, format }: RecommendFlags): Promise<string> {
  if (json || format === 'json') {
    const { recommendJson } = await import('../app/recommend/finding-document.ts');
    return jsonText(recommendJson(past, findings));
  }
  const { recommendMarkdown, recommendText } = await import('./recommend/text.ts');
  return format === 'markdown' ? recommendMarkdown(findings) : recommendText(findings);
}
