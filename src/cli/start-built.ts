#!/usr/bin/env node
/**
 * The built command: runs the bundle of main.ts that lies beside it. With the code cache that the build has stored, V8 compiles nothing. V8
 * refuses a cache of another version or of other flags, and compiles as usual. It does not compare the code, but the build always makes both
 * files.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import type * as Main from './main.ts';

const filename = fileURLToPath(new URL('./bundle.cjs', import.meta.url));

function storedCache(): Buffer | undefined {
  try {
    return readFileSync(`${filename}.cache`);
  } catch {
    return undefined;
  }
}

const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData: storedCache() });
const module = { exports: {} as Partial<typeof Main> };
script.runInThisContext()(module.exports, createRequire(filename), module, filename, dirname(filename));
await module.exports.ended;
