/** Every key that commands print as JSON, with its type, by the type checker. A change is seen in the diff of the snapshot. */
import ts from 'typescript';
import { expect, it } from 'vitest';

/** Functions that print an argument as JSON, and which one. */
const PRINTERS = new Map([
  ['writeJson', 0],
  ['jsonText', 0],
  ['printAnswer', 1],
]);
const DEEPEST = 9;

/** The values below a path: elements, values of a map, properties. Undefined where it has none. */
function below(checker: ts.TypeChecker, type: ts.Type, place: ts.Node): [path: string, type: ts.Type][] | undefined {
  const element = checker.isArrayLikeType(type) ? checker.getIndexTypeOfType(type, ts.IndexKind.Number) : undefined;
  if (element !== undefined) return [['[]', element]];
  if ((type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) === 0) return undefined;
  const values = checker.getIndexTypeOfType(type, ts.IndexKind.String);
  const properties = checker.getPropertiesOfType(type).map((property): [string, ts.Type] => {
    const optional = (property.flags & ts.SymbolFlags.Optional) === 0 ? '' : '?';
    return [`.${property.name}${optional}`, checker.getTypeOfSymbolAtLocation(property, place)];
  });
  return [...(values === undefined ? [] : [['.*', values] as [string, ts.Type]]), ...properties];
}

function linesOf(checker: ts.TypeChecker, printed: ts.Expression, command: string): string[] {
  const expand = (type: ts.Type, path: string, depth: number): string[] =>
    (type.isUnion() ? type.types : [type]).flatMap((part) => {
      const parts = depth > DEEPEST ? undefined : below(checker, part, printed);
      if (parts === undefined) return [`${path}: ${checker.typeToString(part)}`];
      return parts.flatMap(([key, one]) => expand(one, `${path}${key}`, depth + 1));
    });
  return expand(checker.getTypeAtLocation(printed), command, 0);
}

function printedIn(file: ts.SourceFile): ts.Expression[] {
  const printed: ts.Expression[] = [];
  const visit = (node: ts.Node): void => {
    const call = ts.isCallExpression(node) && ts.isIdentifier(node.expression) ? node : undefined;
    const index = call && PRINTERS.get((call.expression as ts.Identifier).text);
    const document = index === undefined ? undefined : call?.arguments[index];
    if (document !== undefined) printed.push(document);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return printed;
}

/** One line for each key: command, path, type. */
function jsonOutputs(): string[] {
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} };
  const config = ts.getParsedCommandLineOfConfigFile('tsconfig.json', {}, host);
  const files = config?.fileNames.filter((file) => file.includes('/src/')) ?? [];
  const program = ts.createProgram(files, config?.options ?? {});
  const checker = program.getTypeChecker();
  const lines = program.getSourceFiles().flatMap((file) => {
    const command = /\/src\/cli\/([\w-]+)/.exec(file.fileName)?.[1];
    // What `printAnswer` prints is read where it is called.
    return command === undefined || file.fileName.endsWith('/operator/show.ts')
      ? []
      : printedIn(file).flatMap((one) => linesOf(checker, one, command));
  });
  return [...new Set(lines)].toSorted();
}

it('what commands print as JSON has the keys and types that it had', async () => {
  await expect(`${jsonOutputs().join('\n')}\n`).toMatchFileSnapshot('../pinned/names/json-outputs.txt');
});
