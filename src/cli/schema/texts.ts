/** Files that there is a schema for: those of policies, and ebb.yaml. */
export const SCHEMAS = ['policies', 'settings'] as const;
export type SchemaName = (typeof SCHEMAS)[number];

/** Where `ebb init` writes it, and where the samples look for it. */
export function schemaPath(name: SchemaName): string {
  return `schema/${name}.schema.json`;
}

/** The JSON Schema as a file's text. */
export async function schemaText(name: SchemaName): Promise<string> {
  return `${JSON.stringify(await schemaOf(name), null, 2)}\n`;
}

async function schemaOf(name: SchemaName): Promise<unknown> {
  switch (name) {
    case 'policies':
      return (await import('../../policy/json-schema.ts')).policyJsonSchema();
    case 'settings':
      return (await import('../../settings/declarations.ts')).settingsJsonSchema();
  }
}
