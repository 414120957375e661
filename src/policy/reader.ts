import { POLICY_LIMITS } from './limits.ts';
import type { PolicyProblem, ProblemCode } from './problem.ts';
import type { Path, YamlDocument } from './read-yaml.ts';
import { placeIssues } from './schema-problems.ts';
import { problemAt, type SourceText, type Span } from './source-text.ts';

/** One document while it becomes policies: its data, and the place to report its problems. */
export interface FileReader {
  path: string;
  document: YamlDocument;
  /** Reports up to the limit of problems of one file; later ones are dropped. */
  report(span: Span, code: ProblemCode, message: string): void;
  problems: PolicyProblem[];
  /** A problem at a place that is not (yet) reported. */
  problemAt(span: Span, code: ProblemCode, message: string): PolicyProblem;
}

/** A policy as it stands in its file, enabled or not, with a function that reports a problem at a part of it. */
export interface WrittenPolicy {
  /** As others see it: with its team's before it. */
  name: string;
  file: string;
  team?: string;
  /** Its place in the file; paths are from the top of the file. */
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

/** Reports the issues of a schema in the value at a path. */
export function reportIssues(
  { document, report }: FileReader,
  parsed: { error?: { issues: Parameters<typeof placeIssues>[1] } | undefined },
  at: Path,
): void {
  for (const { span, code, message } of placeIssues(document, parsed.error?.issues ?? [], at)) {
    report(span, code, message);
  }
}
