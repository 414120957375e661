import { Command } from 'commander';

const EXAMPLES = `
Examples:
  $ ebb schema > policy.schema.json
  then, as the first line of a policy file:
  # yaml-language-server: $schema=policy.schema.json`;

/** `ebb schema`: for completion and checks while writing. `ebb validate` checks more than a schema can say. */
export function schemaCommand(): Command {
  return new Command('schema')
    .description('print the JSON Schema of policy files, for editors')
    .addHelpText('after', EXAMPLES)
    .action(async () => {
      const { policyJsonSchema } = await import('../policy/json-schema.ts');
      process.stdout.write(`${JSON.stringify(policyJsonSchema(), null, 2)}\n`);
    });
}
