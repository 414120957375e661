import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const WORLD = join(import.meta.dirname, '../../src/emulator/world');
/** Beside its own files: the type of the fleet that it starts from, and the CU table. */
const ALLOWED_IMPORTS = /^(\.\/[a-z-]+\.ts|\.\.\/fleet\.ts|\.\.\/\.\.\/domain\/compute\/compute-units\.ts)$/;
const IMPURE = /\b(Date|Math\.random|process|performance|setTimeout|setInterval|crypto|fetch)\b|\bconsole\./;

it.each(readdirSync(WORLD))('the world has no clock, no randomness and no outside: %s', (file) => {
  const source = readFileSync(join(WORLD, file), 'utf8');
  const imports = [...source.matchAll(/from '([^']+)'/g)].map(([, path]) => path);
  expect(imports.filter((path) => !ALLOWED_IMPORTS.test(path ?? ''))).toEqual([]);
  const code = source.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  expect(IMPURE.exec(code)?.[0]).toBeUndefined();
});
