import { Argument, Command } from 'commander';
import { writeOut } from './output.ts';

const EXAMPLES = `
Examples:
  $ ebb schema > schema/policies.schema.json
  $ ebb schema settings > schema/settings.schema.json
  then, as the first line of a policy file in policies/, and of ebb.yaml:
  # yaml-language-server: $schema=../schema/policies.schema.json
  # yaml-language-server: $schema=schema/settings.schema.json

ebb init writes both. Commit them, so that every editor finds them, and print them again after an upgrade.`;

export function schemaCommand(): Command {
  return new Command('schema')
    .addArgument(new Argument('[WHAT]', 'of which files').choices(SCHEMAS).default('policies'))
    .addHelpText('after', EXAMPLES)
    .action(async (name: SchemaName) => {
      writeOut(await schemaText(name));
    });
}

export const SCHEMAS = ['policies', 'settings'] as const;
type SchemaName = (typeof SCHEMAS)[number];

/** The file name that `ebb init` writes and that the samples refer to. */
export function schemaPath(name: SchemaName): string {
  return `schema/${name}.schema.json`;
}

export async function schemaText(name: SchemaName): Promise<string> {
  return `${JSON.stringify(await schemaOf(name), null, 2)}\n`;
}

async function schemaOf(name: SchemaName): Promise<unknown> {
  switch (name) {
    case 'policies':
      return (await import('../policy/json-schema.ts')).policyJsonSchema();
    case 'settings':
      return (await import('../settings/declarations.ts')).settingsJsonSchema();
  }
}
