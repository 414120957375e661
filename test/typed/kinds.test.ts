/** Only the two registries compare kinds of policies: everything else asks a kind's rule, so that a new kind is not missed. */
import ts from 'typescript';
import { expect, it } from 'vitest';
import { KINDS } from '../../src/policy/kinds/kinds.ts';

const REGISTRIES = /\/src\/(domain\/)?policy\/kinds\//;
const names: ReadonlySet<string> = new Set(Object.keys(KINDS));

/** True of a type that is one or several names of kinds and nothing else. */
function isKind(type: ts.Type): boolean {
  const parts = type.isUnion() ? type.types : [type];
  return parts.every((part) => part.isStringLiteral() && names.has(part.value));
}

function comparedIn(checker: ts.TypeChecker, file: ts.SourceFile): string[] {
  const found: string[] = [];
  const isCompared = (node: ts.Expression): boolean =>
    !ts.isStringLiteralLike(node) && isKind(checker.getTypeAtLocation(node));
  const visit = (node: ts.Node): void => {
    const isEquality = ts.isBinaryExpression(node) && /^[!=]==?$/.test(node.operatorToken.getText());
    const withName = isEquality && (ts.isStringLiteralLike(node.left) || ts.isStringLiteralLike(node.right));
    const isFound = withName
      ? isCompared(node.left) || isCompared(node.right)
      : ts.isSwitchStatement(node) && isCompared(node.expression);
    if (isFound) {
      const { line } = file.getLineAndCharacterOfPosition(node.getStart());
      found.push(`${file.fileName.replace(/.*\/src\//, 'src/')}:${line + 1}: ${node.getText().split('\n')[0]}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** Comparisons in files of `src`, with `extra` in place of some. */
function compared(extra: Readonly<Record<string, string>> = {}): string[] {
  const config = ts.getParsedCommandLineOfConfigFile(
    'tsconfig.json',
    {},
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} },
  );
  const options = config?.options ?? {};
  const host = ts.createCompilerHost(options);
  const read = host.readFile.bind(host);
  host.readFile = (name) => extra[name.replace(/.*\/src\//, 'src/')] ?? read(name);
  const files = config?.fileNames.filter((name) => name.includes('/src/')) ?? [];
  const program = ts.createProgram(files, options, host);
  const checker = program.getTypeChecker();
  const own = program
    .getSourceFiles()
    .filter(
      ({ fileName, isDeclarationFile }) =>
        !isDeclarationFile && /\/src\//.test(fileName) && !fileName.includes('node_modules'),
    );
  return own.filter(({ fileName }) => !REGISTRIES.test(fileName)).flatMap((file) => comparedIn(checker, file));
}

it('kinds of policies are compared in their registries only', () => {
  expect(compared()).toEqual([]);
});

it('a comparison, or a switch, is found by its type', () => {
  const text = `import type { Policy } from '../domain/policy/policy.ts';
export const names = (p: Policy) => { switch (p.kind) { case 'freeze': return 1; default: return p.kind !== 'budget'; } };
export const others = (p: { kind: 'restart' | 'update' }) => p.kind === 'restart';
`;
  const found = compared({ 'src/app/stored-waves.ts': text }).filter((line) =>
    line.startsWith('src/app/stored-waves.ts'),
  );
  expect(found.map((line) => line.split(': ')[0])).toEqual(['src/app/stored-waves.ts:2', 'src/app/stored-waves.ts:2']);
});
