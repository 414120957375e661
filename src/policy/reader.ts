import { POLICY_LIMITS } from './limits.ts';
import type { PolicyProblem, ProblemCode } from './problem.ts';
import type { Path, YamlDocument } from './read-yaml.ts';
import { placeIssues } from './schema-problems.ts';
import { problemAt, type SourceText, type Span } from './source-text.ts';

/** A parsed YAML document, and the problems found in it. */
export interface FileReader {
  path: string;
  document: YamlDocument;
  /** Adds a problem, up to `POLICY_LIMITS.problemsPerFile`. */
  report(span: Span, code: ProblemCode, message: string): void;
  problems: PolicyProblem[];
  /** Creates a problem without adding it. */
  problemAt(span: Span, code: ProblemCode, message: string): PolicyProblem;
}

/** The text of a policy, enabled or not. All paths start at the top of the file. */
export interface WrittenPolicy {
  /** The name, qualified by the team. */
  name: string;
  file: string;
  team?: string | undefined;
  /** The place of the policy. */
  at: Path;
  valueAt(path: Path): unknown;
  problemAt(path: Path, code: ProblemCode, message: string): PolicyProblem;
}

export function fileReader(source: SourceText, document: YamlDocument): FileReader {
  const problems: PolicyProblem[] = [];
  return {
    path: source.path,
    document,
    problems,
    report: (span, code, message) => {
      if (problems.length < POLICY_LIMITS.problemsPerFile) problems.push(problemAt(source, span, code, message));
    },
    problemAt: (span, code, message) => problemAt(source, span, code, message),
  };
}

/** Reports the schema issues of the value at a path. */
export function reportIssues(
  { document, report }: FileReader,
  parsed: { error?: { issues: Parameters<typeof placeIssues>[1] } | undefined },
  at: Path,
): void {
  for (const { span, code, message } of placeIssues(document, parsed.error?.issues ?? [], at)) {
    report(span, code, message);
  }
}
