/** Names that others depend on: in stores, settings, policies, scripts and dashboards. A change is seen in the diff of a snapshot. */
import { readdir, readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { rootCommand } from '../../src/cli/root.ts';
import { REASONS } from '../../src/domain/compute/reasons.ts';
import { METRICS } from '../../src/ports/metrics.ts';

interface JsonSchema {
  properties?: Record<string, JsonSchema>;
  additionalProperties?: JsonSchema | boolean;
  items?: JsonSchema;
  [keyword: string]: unknown;
}

async function sources(folder: string): Promise<string[]> {
  const files = (await readdir(folder, { recursive: true })).filter((file) => /\.tsx?$/.test(file));
  return Promise.all(files.map((file) => readFile(`${folder}/${file}`, 'utf8')));
}

/** What matches in the modules of a folder, each text once, in order. */
async function found(folder: string, pattern: RegExp): Promise<string[]> {
  const texts = await sources(folder);
  return [...new Set(texts.flatMap((text) => text.match(pattern) ?? []))].toSorted();
}

/** The paths of all keys that a JSON Schema allows. */
async function keysOf(file: string): Promise<string[]> {
  const paths = new Set<string>();
  const visit = (schema: unknown, path: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    const { properties = {}, additionalProperties, items, ...others } = schema as JsonSchema;
    for (const [key, value] of Object.entries(properties)) {
      paths.add(`${path}${key}`);
      visit(value, `${path}${key}.`);
    }
    visit(additionalProperties, `${path}*.`);
    visit(items, path);
    for (const keyword of ['anyOf', 'oneOf', 'allOf']) {
      for (const one of (others[keyword] as JsonSchema[] | undefined) ?? []) visit(one, path);
    }
    for (const [name, one] of Object.entries((others.$defs as Record<string, JsonSchema> | undefined) ?? {})) {
      visit(one, `#${name}.`);
    }
  };
  visit(JSON.parse(await readFile(file, 'utf8')), '');
  return [...paths].toSorted();
}

async function expectSame(lines: readonly string[], name: string): Promise<void> {
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(`names/${name}.txt`);
}

/** A command and those below it, with arguments, flags and the variables that set them. */
function flagsOf(command: Command, before: string): string[] {
  const name = `${before} ${command.name()}`;
  const args = command.registeredArguments.map((one) => `  ${one.required ? one.name() : `[${one.name()}]`}`);
  const options = command.options.map(({ flags, envVar }) => `  ${flags}${envVar === undefined ? '' : ` ${envVar}`}`);
  return [name, ...args, ...options, ...command.commands.flatMap((below) => flagsOf(below, name))];
}

describe('names that others depend on', () => {
  it('of metrics and their labels are what they were', async () => {
    await expectSame(
      Object.entries(METRICS).map(([name, { labels }]) => `${name} ${labels.join(' ')}`.trim()),
      'metrics',
    );
  });

  it('of log events are what they were', async () => {
    await expectSame(await found('src', /'ebb\.[a-z_]+'/g), 'events');
  });

  it('of reasons are what they were', async () => {
    await expectSame(Object.keys(REASONS).toSorted(), 'reasons');
  });

  it.each(['settings', 'policies', 'notification'])('of keys in the schema of %s are what they were', async (name) => {
    await expectSame(await keysOf(`schema/${name}.schema.json`), `keys-of-${name}`);
  });

  it('of environment variables are what they were', async () => {
    await expectSame(await found('src', /\b(?:EBB|NEON)_[A-Z][A-Z_]*[A-Z]\b/g), 'environment');
  });

  it('of commands, arguments and flags are what they were', async () => {
    const byName = COMMANDS.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const commands = await Promise.all(byName.map(({ load }) => load()));
    await expectSame(
      [rootCommand(), ...commands].flatMap((command) => flagsOf(command, '')).map((line) => line.slice(1)),
      'commands',
    );
  });

  it('of keys on Redis and tables on Postgres are what they were', async () => {
    const keys = await found('src', /(?<=`\$\{(?:prefix|options\.prefix|group|name)\}):[a-z][\w:${}.()-]*/g);
    const tables = await found('src/adapters', /CREATE (?:TABLE|SEQUENCE|UNIQUE INDEX|INDEX) IF NOT EXISTS[^'`]*/g);
    await expectSame([...keys, ...tables.map((text) => text.replace(/\s+/g, ' ').trim())], 'stored');
  });
});
