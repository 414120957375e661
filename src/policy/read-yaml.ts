import { Composer, type Document, isMap, isScalar, isSeq, Lexer, type Node, Parser } from 'yaml';
import { POLICY_LIMITS } from './limits.ts';
import type { PolicyProblem, ProblemCode } from './problem.ts';
import { problemAt, type SourceText, type Span } from './source-text.ts';

export type Path = readonly PropertyKey[];

/** A document as plain data, with the places of its parts. */
export interface YamlDocument {
  value: unknown;
  /** True if there is a value at the path, which may be null. */
  has(path: Path): boolean;
  valueAt(path: Path): unknown;
  /** The place of the value at a path, or of its nearest ancestor that exists. */
  spanOf(path: Path): Span;
  /** The place of the last key of the path; the place of its mapping if the mapping has no such key. */
  keySpanOf(path: Path): Span;
}

export type YamlResult = { ok: true; document: YamlDocument } | { ok: false; problems: PolicyProblem[] };

/**
 * Reads one YAML document of plain data. Refuses dangerous or surprising features: tags, anchors, aliases, directives, several
 * documents, complex keys, deep nesting.
 */
export function readYaml(source: SourceText): YamlResult {
  const problems: PolicyProblem[] = [];
  const report = (span: Span, code: ProblemCode, message: string) => {
    if (problems.length < POLICY_LIMITS.problemsPerFile) problems.push(problemAt(source, span, code, message));
  };
  const document = compose(source, report);
  if (!document) return { ok: false, problems };
  for (const error of firstOfEachLine(document.errors, source)) {
    const span = { from: error.pos[0], to: error.pos[1] };
    report(span, 'yaml', error.message);
  }
  if (problems.length > 0) return { ok: false, problems };
  const value = toPlain(document.contents, report);
  if (problems.length > 0) return { ok: false, problems };
  const root = document.contents;
  return {
    ok: true,
    document: {
      value,
      has: (path) => valueAt(value, path) !== undefined,
      valueAt: (path) => valueAt(value, path),
      spanOf: (path) => spanOfNode(nodeAt(root, path)),
      keySpanOf: (path) => keySpan(root, path),
    },
  };
}

type Report = (span: Span, code: ProblemCode, message: string) => void;

/** Checks depth and size before the recursive part of the parser. Returns undefined for a refused text, which is then reported. */
function compose(source: SourceText, report: Report): Document.Parsed | undefined {
  const parser = new Parser();
  const tokens = [];
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(source.text)) {
    lexemes += 1;
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (parser.stack.length > POLICY_LIMITS.depth + 2) {
      const from = parser.offset;
      report({ from, to: from + 1 }, 'limit', `nested deeper than ${POLICY_LIMITS.depth} levels`);
      return undefined;
    }
    if (lexemes > POLICY_LIMITS.tokens) {
      report({ from: parser.offset, to: parser.offset + 1 }, 'limit', 'too many keys and values in one file; split it');
      return undefined;
    }
  }
  tokens.push(...parser.end());
  const directive = tokens.find((token) => token.type === 'directive');
  if (directive) {
    const from = directive.offset;
    report({ from, to: from + directive.source.length }, 'yaml', 'YAML directives are not supported; remove this line');
    return undefined;
  }
  const composer = new Composer({ prettyErrors: false, uniqueKeys: false, logLevel: 'silent', strict: true });
  const [document, second] = composer.compose(tokens, true, source.text.length);
  if (second) {
    const span = { from: second.range[0], to: second.range[0] + 3 };
    report(span, 'yaml', 'a file holds one YAML document; remove the second "---"');
  }
  return document as Document.Parsed | undefined;
}

/** Later errors of a line are usually consequences of the first one. */
function firstOfEachLine(errors: Document.Parsed['errors'], source: SourceText) {
  const lines = new Set<number>();
  return errors.filter((error) => {
    const { line } = source.lineCounter.linePos(error.pos[0]);
    return !lines.has(line) && lines.add(line);
  });
}

function toPlain(node: unknown, report: Report): unknown {
  if (node === null || node === undefined) return null;
  const span = spanOfNode(node as Node);
  if (refuseDecoration(node as Node, span, report)) return null;
  if (isScalar(node)) return node.value;
  if (isSeq(node)) return node.items.map((item) => toPlain(item, report));
  if (!isMap(node)) return null;
  const entries = new Map<string, unknown>();
  for (const pair of node.items) {
    const keySpanHere = spanOfNode(pair.key as Node);
    if (refuseDecoration(pair.key as Node, keySpanHere, report)) continue;
    const key = keyText(pair.key);
    if (key === undefined) report(keySpanHere, 'yaml', 'expected a plain key such as "name:"');
    else if (entries.has(key)) report(keySpanHere, 'yaml', `the key "${shorten(key)}" is already there`);
    else entries.set(key, toPlain(pair.value, report));
  }
  return Object.fromEntries(entries);
}

function refuseDecoration(node: Node | null, span: Span, report: Report): boolean {
  if (!node) return false;
  const decorated = node as { tag?: string; anchor?: string; type?: string; source?: string };
  if ('source' in decorated && !isScalar(node)) {
    report(span, 'yaml', 'YAML aliases are not supported; write the value out, or name a selector under "groups"');
    return true;
  }
  if (decorated.anchor !== undefined) report(span, 'yaml', 'YAML anchors are not supported; write the value out');
  if (decorated.tag !== undefined) report(span, 'yaml', 'YAML tags are not supported; write a plain value');
  return decorated.anchor !== undefined || decorated.tag !== undefined;
}

function keyText(key: unknown): string | undefined {
  if (!isScalar(key)) return undefined;
  if (typeof key.value === 'string') return key.value;
  return typeof key.source === 'string' && key.source !== '' ? key.source : undefined;
}

function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = Reflect.get(value, step);
  }
  return value;
}

function nodeAt(root: unknown, path: Path): Node | null {
  let node = root;
  for (const step of path) {
    const next = childOf(node, step);
    if (!next) break;
    node = next;
  }
  return (node ?? null) as Node | null;
}

function childOf(node: unknown, step: PropertyKey): unknown {
  if (isSeq(node)) return node.items[Number(step)];
  return pairOf(node, step)?.value;
}

function pairOf(node: unknown, key: PropertyKey | undefined) {
  return isMap(node) ? node.items.find((pair) => keyText(pair.key) === key) : undefined;
}

function keySpan(root: unknown, path: Path): Span {
  const parent = nodeAt(root, path.slice(0, -1));
  const pair = pairOf(parent, path.at(-1));
  return spanOfNode((pair?.key ?? firstKey(parent) ?? parent) as Node | null);
}

/** The place of a mapping is its first key, since a block mapping has no token of its own. */
function firstKey(node: unknown): unknown {
  return isMap(node) ? node.items[0]?.key : undefined;
}

function spanOfNode(node: Node | null): Span {
  const marked = (firstKey(node) ?? node) as Node | null;
  if (!marked?.range) return { from: 0, to: 0 };
  return { from: marked.range[0], to: marked.range[1] };
}

function shorten(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
