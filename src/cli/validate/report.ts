import { counted, countedComputes } from '../../common/names.ts';
import { printable } from '../../common/safe-text.ts';
import type { Finding } from '../../policy/lint/lint.ts';
import { formatProblem, type PolicyProblem } from '../../policy/problem.ts';
import { jsonText } from '../output.ts';
import type { Examined } from './examine.ts';

/** The output, line by line. */
interface Report {
  /** Commands for the runner of a workflow; printed first. */
  commands?: string[];
  stdout: string[];
  stderr: string[];
  /** The problems of a command that fails. Absent if it succeeds, or if `stdout` or `commands` already has the problems. */
  errors?: string[];
}

export function reportAs(format: 'text' | 'json' | 'github', examined: Examined, options: { color: boolean }): Report {
  if (format === 'json') return asJson(examined);
  return format === 'github' ? asWorkflowCommands(examined) : asText(examined, options);
}

function asText({ problems, warnings, notes, set, written, matches }: Examined, { color }: { color: boolean }): Report {
  const shown = (problem: PolicyProblem | Finding) => formatProblem(withCode(problem), { color });
  const stderr = [...notes.map((note) => `note: ${note}`), ...warnings.map((warning) => `warning: ${shown(warning)}`)];
  const selected = (matches ?? []).flatMap(({ policy, computes, tooYoung, unknown }) => [
    `${printable(policy)} selects ${countedComputes(computes.length)}${tooYoungText(tooYoung)}${unknownText(unknown)}`,
    ...computes.map(
      ({ computeId, projectName, branchName }) =>
        `  ${printable(computeId)}  ${printable([projectName, branchName].filter((name) => name !== undefined).join(' / '))}`,
    ),
  ]);
  const unread = unreadTeams(problems);
  if (matches && unread.length > 0)
    selected.push(`policies of ${printable(unread.join(', '))} can't be read: what they select is not known`);
  if (problems.length > 0 || !set) return { stdout: selected, stderr, errors: problems.map(shown) };
  const found = warnings.length === 0 ? 'no problems' : counted(warnings.length, 'warning');
  const disabled = written.policies - set.policies.length;
  const policies = `${written.policies} ${written.policies === 1 ? 'policy' : 'policies'}`;
  const ofThem = disabled === 0 ? '' : ` (${disabled} disabled)`;
  return { stdout: [...selected, `${found}: ${policies}${ofThem} in ${counted(written.files, 'file')}`], stderr };
}

/** Teams whose policies can't be read. A finding is about policies that were read. */
function unreadTeams(problems: Examined['problems']): string[] {
  return [...new Set(problems.flatMap((one) => ('severity' in one ? [] : (one.team ?? []))))];
}

function tooYoungText(tooYoung: number): string {
  return tooYoung === 0 ? '' : `, and ${tooYoung} more once older than min_age`;
}

function unknownText(unknown: number): string {
  return unknown === 0 ? '' : `; of ${unknown} more the names or roles that it selects by are not known`;
}

/** A finding's code is its anchor in docs/lints.md. */
function withCode(problem: PolicyProblem | Finding) {
  return 'severity' in problem ? { ...problem, message: `${problem.message} [${problem.code}]` } : problem;
}

function asJson({ problems, warnings, notes, set, written, matches, fleet }: Examined): Report {
  const report = {
    ok: problems.length === 0,
    ...(set && { policies: set.policies.length, disabled: written.policies - set.policies.length, hash: set.hash }),
    warnings,
    problems,
    ...(matches && {
      matches: matches.map(({ policy, computes }) => ({
        policy,
        computes: computes.map(({ computeId }) => computeId),
      })),
      not_matched: unreadTeams(problems),
    }),
    ...(fleet && { branch_names_refused: fleet.branchNamesRefused }),
  };
  return { stdout: [jsonText(report)], stderr: notes.map((note) => `note: ${note}`) };
}

function asWorkflowCommands(examined: Examined): Report {
  const { problems, warnings, notes } = examined;
  const commands = [
    ...problems.map((problem) => workflowCommand('error', problem)),
    ...warnings.map((warning) => workflowCommand('warning', warning)),
    ...notes.map((note) => workflowCommand('notice', { message: note })),
  ];
  // Readers of the log also get the standard output of the text format.
  const { stdout } = asText(examined, { color: false });
  return { commands, stdout, stderr: [] };
}

type Annotated = Partial<Omit<PolicyProblem, 'code'>> & { code?: string; message: string };

/**
 * A problem as a workflow command of GitHub Actions, which marks the line in a pull request:
 * `::error file=…,line=…,col=…,endColumn=…,title=…::message`.
 */
export function workflowCommand(level: 'error' | 'warning' | 'notice', problem: Annotated): string {
  const { file, line, column, excerpt, code, message } = problem;
  const properties = Object.entries({
    file,
    line,
    col: column,
    endColumn: column === undefined || !excerpt ? undefined : column + excerpt.length,
    title: code,
  })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${escapeProperty(String(value))}`);
  const head = properties.length === 0 ? level : `${level} ${properties.join(',')}`;
  return `::${head}::${escapeData(message)}`;
}

/** Escapes what the runner unescapes: the percent sign first, so that nothing is escaped twice. `##[` is a command in its old form. */
function escapeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('##[', '## [');
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
