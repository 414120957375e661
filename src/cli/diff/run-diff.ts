import { missingSteps } from '../../app/situation/plan.ts';
import { type CompiledPolicies, compilePolicies } from '../../domain/policy/compiled-policies.ts';
import type { Settings } from '../../settings/settings.ts';
import { type FilterFlags, filtered, filtersByBranch } from '../filter.ts';
import type { CommonFlags } from '../flags.ts';
import { unknownBudgetNotes } from '../forecast/budget-steps.ts';
import { forecastEach } from '../forecast/by-past.ts';
import { displayZone } from '../forecast/local-time.ts';
import { withLeaderDecisions } from '../forecast/outlook.ts';
import { readSpan, type SpanFlags } from '../forecast/span.ts';
import { missingJson, splitPlanned } from '../not-planned.ts';
import { loadPoliciesOrFail, type ReadPolicies, settingsOrFail } from '../or-fail.ts';
import { jsonText, writeNotes, writeOut } from '../output.ts';
import { readForecastStart } from '../read-fleet.ts';
import { compare } from './compare.ts';
import { findingsFollowed } from './findings-followed.ts';
import { diffMarkdown, diffText } from './render.ts';
import { teamsIn } from './teams-of-copy.ts';
import { diffJson } from './to-json.ts';

export interface DiffFlags extends CommonFlags, SpanFlags, FilterFlags {
  pastDays: number;
  format: 'text' | 'json' | 'markdown';
}

export async function runDiff(oldPath: string, newPath: string, flags: DiffFlags): Promise<void> {
  const settings = settingsOrFail(flags);
  const { policies: before, broken: brokenBefore } = await policiesIn(oldPath, newPath, settings);
  const { policies: after, broken: brokenAfter } = await policiesIn(newPath, oldPath, settings);
  const nowMs = Date.now();
  const zone = displayZone(flags, [after.set, before.set]);
  const span = readSpan(flags, { zone, nowMs });
  const selectsByBranch = before.selectsByBranch || after.selectsByBranch || filtersByBranch(flags);
  const read = await readForecastStart(settings, flags, { selectsByBranch, nowMs });
  // A freeze by people would hide what the policies themselves change.
  const start = { ...read, subjects: read.subjects.map(({ freezes: _freezes, ...subject }) => subject) };
  const wanted = filtered(start.subjects, flags, { settings, policies: after });
  const { planned: subjects, notPlanned } = splitPlanned(
    wanted,
    [after, before],
    new Map([...brokenBefore, ...brokenAfter]),
  );
  const oldPolicies = withLeaderDecisions(before, { ...start, settings, span });
  const newPolicies = withLeaderDecisions(after, { ...start, settings, span });
  const options = { settings, flags, span, subjects, nowMs };
  const [oldOutlooks = [], newOutlooks = []] = await forecastEach([oldPolicies, newPolicies], start, options);
  const compared = compare(
    { policies: oldPolicies, outlooks: oldOutlooks },
    { policies: newPolicies, outlooks: newOutlooks },
    span,
  );
  const comparison = { ...compared, notPlanned };
  const missing = [...start.missing, ...missingSteps([before.set, after.set], start)];
  writeNotes({ notes: [...start.notes, ...unknownBudgetNotes([before.set, after.set], start.budgets)], missing });
  if (flags.format === 'json') {
    // Only JSON lists the findings that the changes follow; the text has the total saving.
    const { findings, notes } = await findingsFollowed({
      settings,
      flags: { ...flags, days: flags.pastDays },
      changes: comparison.changes,
      subjects,
    });
    writeNotes({ notes });
    writeOut(`${jsonText({ ...diffJson(span, { ...comparison, findings }), ...missingJson(missing) })}\n`);
  } else {
    const asText = flags.format === 'markdown' ? diffMarkdown : diffText;
    writeOut(`${asText(comparison, { ...span, zone })}\n`);
  }
}

async function policiesIn(
  path: string,
  comparedWith: string,
  settings: Settings,
): Promise<{ policies: CompiledPolicies; broken: ReadPolicies['broken'] }> {
  const teams = await teamsIn(path, comparedWith, settings);
  const { policies, broken } = await loadPoliciesOrFail([path], { ...settings, teams }, { isComplete: false });
  return { policies: compilePolicies(policies), broken };
}
