import type { PolicyProblem } from '../../policy/problem.ts';

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

/** As the runner reads them back: a percent sign first, so that nothing is escaped twice. `##[` is a command in its old form. */
function escapeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('##[', '## [');
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
