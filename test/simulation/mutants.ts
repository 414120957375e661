/**
 * Small changes of a source, each of which a rule of the simulation should notice: negated conditions, moved bounds, left out statements,
 * other constants. Left out is what no rule looks at: messages and what is only said in them, statements that only log, count or report, and how
 * much work is done at a time.
 */

import ts from 'typescript';
import { seededRandom } from '../../src/domain/random.ts';

export interface Mutant {
  file: string;
  /** From 1. */
  line: number;
  from: number;
  to: number;
  before: string;
  after: string;
  /** The expression around it, to see if it is reached; absent for what is evaluated when the module is loaded. */
  around?: { from: number; to: number };
}

type Change = Pick<Mutant, 'from' | 'to' | 'after'>;

const OPERATORS: ReadonlyMap<ts.SyntaxKind, readonly string[]> = new Map([
  [ts.SyntaxKind.LessThanToken, ['<=', '>=']],
  [ts.SyntaxKind.LessThanEqualsToken, ['<', '>']],
  [ts.SyntaxKind.GreaterThanToken, ['>=', '<=']],
  [ts.SyntaxKind.GreaterThanEqualsToken, ['>', '<']],
  [ts.SyntaxKind.EqualsEqualsEqualsToken, ['!==']],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, ['===']],
  [ts.SyntaxKind.AmpersandAmpersandToken, ['||']],
  [ts.SyntaxKind.BarBarToken, ['&&']],
  [ts.SyntaxKind.PlusToken, ['-']],
  [ts.SyntaxKind.MinusToken, ['+']],
  [ts.SyntaxKind.AsteriskToken, ['/']],
  [ts.SyntaxKind.SlashToken, ['*']],
]);

const METHODS: Readonly<Record<string, string>> = { some: 'every', every: 'some', min: 'max', max: 'min' };

/** Calls of which no rule sees anything. */
const UNSEEN =
  /\b(telemetry|log|metrics|outages)\b|^(await )?(deps\.)?(report|log[A-Z]|export[A-Z])|nextTurn\(|^impact\.(byPolicy|examples)/;

/** Functions that only say something. */
const SAYS = /^(report|say|describe|warn|log|export|shortHash)/;

/** How much is done, or said, at a time. */
const AMOUNTS = /^(CONCURRENT|MAX_EXAMPLES|MAX_PROBLEMS_LOGGED|PROJECTS_PER_TURN)/;

/** All mutants of a source, in its order. */
export function mutantsOf(file: string, text: string): Mutant[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: Mutant[] = [];
  const visit = (node: ts.Node): void => {
    if (isUnseen(node)) return;
    for (const change of changesOf(node)) {
      const line = source.getLineAndCharacterOfPosition(change.from).line + 1;
      const around = aroundOf(node);
      found.push({ file, line, before: text.slice(change.from, change.to), ...change, ...(around && { around }) });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function isUnseen(node: ts.Node): boolean {
  if (ts.isImportDeclaration(node) || ts.isTypeNode(node) || ts.isInterfaceDeclaration(node)) return true;
  if (ts.isTypeAliasDeclaration(node) || ts.isTemplateExpression(node)) return true;
  if (ts.isFunctionDeclaration(node)) return SAYS.test(node.name?.text ?? '');
  if (ts.isVariableDeclaration(node)) return AMOUNTS.test(node.name.getText());
  if (ts.isConditionalExpression(node)) return isText(node.whenTrue) || isText(node.whenFalse);
  if (ts.isIfStatement(node)) return isUnseen(node.thenStatement) && !node.elseStatement;
  if (ts.isBlock(node)) return node.statements.length > 0 && node.statements.every(isUnseen);
  return ts.isExpressionStatement(node) && UNSEEN.test(node.getText());
}

/** True for what is said to people: other texts are codes, without a space. */
function isText(node: ts.Node): boolean {
  return ts.isTemplateExpression(node) || (ts.isStringLiteralLike(node) && node.text.includes(' '));
}

/** The expression that is evaluated just when a changed node is. */
function aroundOf(node: ts.Node): Mutant['around'] {
  if (!ts.findAncestor(node, ts.isFunctionLike)) return undefined;
  let expression = node;
  if (ts.isIfStatement(node) || ts.isExpressionStatement(node)) expression = node.expression;
  else if (ts.isPropertyAccessExpression(node)) expression = node.parent;
  return { from: expression.getStart(), to: expression.getEnd() };
}

/** The source with a call of `hit` in front of each place that is changed: with the mutant's index among all. */
export function withHits(text: string, mutants: readonly (Mutant & { index: number })[]): string {
  const texts = new Map<number, { open: string; close: string }>();
  const at = (place: number) => texts.get(place) ?? { open: '', close: '' };
  for (const { around, index } of mutants) {
    if (!around) continue;
    texts.set(around.from, { ...at(around.from), open: `${at(around.from).open}(hit(${index}), ` });
    texts.set(around.to, { ...at(around.to), close: `${at(around.to).close})` });
  }
  return [...texts]
    .toSorted(([a], [b]) => b - a)
    .reduce((after, [place, { open, close }]) => after.slice(0, place) + close + open + after.slice(place), text);
}

function instead(of: ts.Node, after: string): Change {
  return { from: of.getStart(), to: of.getEnd(), after };
}

function changesOf(node: ts.Node): Change[] {
  if (ts.isIfStatement(node)) return [instead(node.expression, `!(${node.expression.getText()})`)];
  if (ts.isConditionalExpression(node)) return [instead(node.condition, `!(${node.condition.getText()})`)];
  if (ts.isBinaryExpression(node)) return otherOperators(node);
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken)
    return [instead(node, node.operand.getText())];
  if (ts.isExpressionStatement(node)) return [instead(node, ';')];
  const method = ts.isPropertyAccessExpression(node) ? METHODS[node.name.text] : undefined;
  if (method !== undefined && ts.isPropertyAccessExpression(node)) return [instead(node.name, method)];
  const constant = otherConstant(node);
  return constant === undefined ? [] : [instead(node, constant)];
}

function otherOperators({ operatorToken }: ts.BinaryExpression): Change[] {
  // Texts are put together by +.
  const isText = operatorToken.kind === ts.SyntaxKind.PlusToken && /['`]/.test(operatorToken.parent.getText());
  return isText ? [] : (OPERATORS.get(operatorToken.kind) ?? []).map((after) => instead(operatorToken, after));
}

function otherConstant(node: ts.Node): string | undefined {
  if (ts.isNumericLiteral(node)) return Number(node.text) === 0 ? '1' : '0';
  if (node.kind === ts.SyntaxKind.TrueKeyword) return 'false';
  return node.kind === ts.SyntaxKind.FalseKeyword ? 'true' : undefined;
}

/** So many of them, or all; which, the seed decides. In the order in which they are drawn. */
export function sampleOf<M extends Mutant>(mutants: readonly M[], count: number, seed: number): M[] {
  const uniform = seededRandom(seed);
  return mutants
    .map((mutant) => ({ mutant, rank: uniform() }))
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, count)
    .map(({ mutant }) => mutant);
}
