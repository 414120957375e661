import { recommendJson } from '../../app/recommend/finding-document.ts';
import { policyFiles } from '../../app/recommend/policies.ts';
import { changeBy, type Finding } from '../../domain/recommend/finding.ts';
import { recommend } from '../../domain/recommend/recommend.ts';
import { holidaysOf } from '../../policy/calendars/public-holidays.ts';
import { type FilterFlags, filtered, selectComputes } from '../filter.ts';
import type { PastFlags } from '../flags.ts';
import { refuseIfThere, writeFiles } from '../init/files.ts';
import { markdownText } from '../markdown.ts';
import { missingJson, type NotPlanned, notPlannedJson, notPlannedLines, splitPlanned } from '../not-planned.ts';
import { settingsOrFail } from '../or-fail.ts';
import { jsonText, writeErrLine, writeNotes, writeOut } from '../output.ts';
import { type FleetPast, planNotes, readPast } from '../past/read-past.ts';
import { readablePolicies, recommendFacts, storedFacts } from './facts.ts';
import { type Examined, firstLines, recommendMarkdown, recommendText } from './text.ts';

export interface RecommendFlags extends PastFlags, FilterFlags {
  minUsd?: number;
  /** Seconds. */
  coldStartWorth?: number;
  write?: string;
  format: 'text' | 'json' | 'markdown';
}

export async function runRecommend(names: string[], flags: RecommendFlags): Promise<void> {
  const { coldStartWorth } = flags;
  const settings = settingsOrFail(flags);
  const { policies, broken, isComplete } = await readablePolicies(settings);
  const selected = (computes: FleetPast['computes']) =>
    filtered(selectComputes(computes, names), flags, { settings, policies });
  const options = { holidaysOf, ...(coldStartWorth !== undefined && { coldStartWorthMs: 1000 * coldStartWorth }) };
  const onNewest = async ({ computes }: FleetPast) => {
    const facts = recommendFacts(settings, selected(computes), { policies });
    const lines = firstLines(recommend(facts, options).filter((one) => isWanted(one, flags)));
    if (lines.length === 0) return;
    writeErrLine('first findings, by the newest operations of each project; the rest is being read:');
    for (const line of lines) writeErrLine(`  ${line}`);
  };
  const past = await readPast(settings, flags, { readBranches: true, onNewest });
  const stored = flags.operations === undefined ? await storedFacts(settings, past.toMs) : undefined;
  const computes = selected(past.computes);
  const facts = recommendFacts(settings, computes, { ...stored, policies });
  const findings = recommend(facts, options).filter((finding) => isWanted(finding, flags));
  const notes = [...planNotes(past), ...past.notes, ...(stored?.notes ?? [])];
  writeNotes({ ...past, notes: [...new Set(notes)] });
  if (flags.write !== undefined) await writePolicies(flags.write, findings, past);
  const notPlanned = policies ? splitPlanned(computes, [policies], broken).notPlanned : [];
  const examined = examinedOf(computes, past);
  writeOut(`${rendered(findings, { past, notPlanned, examined }, flags)}\n`);
  // As in other commands, policies that can't be read are an error.
  if (!isComplete) process.exitCode = 1;
}

function examinedOf(computes: FleetPast['computes'], { unread }: FleetPast): Examined {
  const unreadComputes = computes.filter(({ compute }) => unread.has(compute.projectId));
  return { computes: computes.length, unread: unreadComputes.length };
}

/** A finding without a price is never below the minimum, since its saving is unknown. */
function isWanted({ savesUsd }: Finding, flags: RecommendFlags): boolean {
  return flags.minUsd === undefined || savesUsd === undefined || savesUsd.high >= flags.minUsd;
}

async function writePolicies(folder: string, findings: readonly Finding[], { computes }: FleetPast): Promise<void> {
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
  const setElsewhere = findings.filter((finding) => changeBy(finding) === 'changed_policy').length;
  if (setElsewhere > 0)
    writeErrLine(`set by a policy or hold, to be changed there: ${setElsewhere} of ${findings.length} findings`);
  const byHand = findings.filter((finding) => changeBy(finding) === 'people').length;
  if (byHand > 0) writeErrLine(`without a policy, for people to look at: ${byHand} of ${findings.length} findings`);
}

function rendered(
  findings: readonly Finding[],
  { past, notPlanned, examined }: { past: FleetPast; notPlanned: readonly NotPlanned[]; examined: Examined },
  { format }: RecommendFlags,
): string {
  if (format === 'json') {
    return jsonText({
      ...recommendJson(past, findings),
      ...(examined.unread > 0 && { unread_computes: examined.unread }),
      ...notPlannedJson(notPlanned),
      ...missingJson(past.missing),
    });
  }
  const lines = notPlannedLines(notPlanned, 'without a proposed policy');
  const shown =
    format === 'markdown'
      ? [recommendMarkdown(findings, examined), ...lines.map(markdownText)]
      : [recommendText(findings, examined), ...lines];
  return shown.join('\n\n');
}
