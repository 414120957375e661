/**
 * Small changes of a source, each of which a rule of the simulation should notice: negated conditions, moved bounds, left out statements,
 * other constants. Left out are messages, and statements that only log, count or report: no rule looks at those.
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
const UNSEEN = /\b(telemetry|log|metrics|outages)\b|^(await )?(deps\.)?report/;

/** All mutants of a source, in its order. */
export function mutantsOf(file: string, text: string): Mutant[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: Mutant[] = [];
  const visit = (node: ts.Node): void => {
    if (isUnseen(node)) return;
    for (const change of changesOf(node)) {
      const line = source.getLineAndCharacterOfPosition(change.from).line + 1;
      found.push({ file, line, before: text.slice(change.from, change.to), ...change });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function isUnseen(node: ts.Node): boolean {
  if (ts.isImportDeclaration(node) || ts.isTypeNode(node) || ts.isInterfaceDeclaration(node)) return true;
  if (ts.isTypeAliasDeclaration(node) || ts.isTemplateExpression(node)) return true;
  if (ts.isFunctionDeclaration(node)) return /^(report|say|describe|warn|log)/.test(node.name?.text ?? '');
  return ts.isExpressionStatement(node) && UNSEEN.test(node.getText());
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
export function sampleOf(mutants: readonly Mutant[], count: number, seed: number): Mutant[] {
  const uniform = seededRandom(seed);
  return mutants
    .map((mutant) => ({ mutant, rank: uniform() }))
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, count)
    .map(({ mutant }) => mutant);
}
