/** docs/policy-reference.md, made of the schema that reads policies. */
import { policyJsonSchema } from '../src/policy/json-schema.ts';
import { GENERATED, table } from './markdown.ts';

/** What of a JSON Schema the page shows. */
export interface Schema {
  title?: string;
  description?: string;
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  type?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | false;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
}

/** One key of the language, with the place at which it is written. */
export interface ReferenceKey {
  path: string;
  schema: Schema;
  isRequired: boolean;
}

const root = policyJsonSchema() as Schema;
const kinds = root.properties?.policies?.items?.oneOf ?? [];
const [first] = kinds;

/** Keys that every kind has. */
const COMMON = Object.keys(first?.properties ?? {}).filter(
  (key) => key !== 'kind' && kinds.every(({ properties }) => key in (properties ?? {})),
);

/** All keys below a mapping, those of nested ones with their path: `disruption.raise.when`, `windows[].at`. */
export function keysOf(schema: Schema, prefix = ''): ReferenceKey[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, value]) => {
    const key = { path: `${prefix}${name}`, schema: value, isRequired: schema.required?.includes(name) === true };
    return [key, ...below(value, key.path)];
  });
}

function below(schema: Schema, path: string): ReferenceKey[] {
  const forms = [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  return forms.flatMap((form) => {
    const { items, additionalProperties: named } = form;
    return [
      ...keysOf(form, `${path}.`),
      ...(items ? below(items, `${path}[]`) : []),
      ...(named ? below(named, `${path}.NAME`) : []),
    ];
  });
}

/** Every section of the page and its keys. */
export function sections(): { title: string; text: string; keys: ReferenceKey[] }[] {
  const { policies, ...file } = root.properties ?? {};
  const every = { properties: pick(first, (key) => COMMON.includes(key)), required: first?.required ?? [] };
  return [
    { title: 'A file', text: 'The keys at the top of a file.', keys: fileKeys(file, policies) },
    { title: 'Every policy', text: 'The keys that all kinds have, besides `kind`.', keys: keysOf(every) },
    ...kinds.map((kind) => ({
      title: `\`kind: ${kind.properties?.kind?.const}\``,
      text: kind.properties?.kind?.description ?? '',
      keys: keysOf({ ...kind, properties: pick(kind, (key) => key !== 'kind' && !COMMON.includes(key)) }),
    })),
  ];
}

function fileKeys(file: Record<string, Schema>, policies: Schema | undefined): ReferenceKey[] {
  const last = { path: 'policies', schema: { ...policies }, isRequired: true };
  return [...keysOf({ properties: file, required: root.required ?? [] }), last];
}

function pick(kind: Schema | undefined, keep: (key: string) => boolean): Record<string, Schema> {
  return Object.fromEntries(Object.entries(kind?.properties ?? {}).filter(([key]) => keep(key)));
}

/** What may be written, in a few words. */
function formOf(schema: Schema): string {
  if (schema.title !== undefined) return schema.title;
  if (schema.const !== undefined) return `\`${schema.const}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(', ');
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms) return [...new Set(forms.map(formOf))].join(', or ');
  if (schema.type === 'array') return `a list: ${schema.items ? formOf(schema.items) : ''}`;
  return FORMS[schema.type ?? ''] ?? '';
}

const FORMS: Readonly<Record<string, string>> = {
  object: 'a mapping',
  string: 'text',
  boolean: '`true`, `false`',
  number: 'a number',
  integer: 'a whole number',
};

function defaultOf({ schema, isRequired }: ReferenceKey): string {
  if (schema.default !== undefined) return `; default \`${JSON.stringify(schema.default).replaceAll('"', '')}\``;
  return isRequired ? '; required' : '';
}

/** A row of the page: a key, and where the keys below it are described if that is elsewhere. */
interface Row {
  key: ReferenceKey;
  same?: string;
}

/** The keys of a section, each once. Keys below a mapping that the page has described, as those of a selector, are left out. */
function rowsOf(keys: readonly ReferenceKey[], described: Map<string, string>): Row[] {
  const rows = new Map<string, Row>();
  const isBelow = (path: string, other: string) => path.startsWith(`${other}.`) || path.startsWith(`${other}[`);
  for (const key of keys) {
    if (rows.has(key.path) || [...rows.values()].some(({ key: { path }, same }) => same && isBelow(key.path, path)))
      continue;
    const children = keys.filter(({ path }) => isBelow(path, key.path));
    const contents = [
      ...new Set(
        children.map(
          ({ path, schema }) => `${path.slice(key.path.length).replace(/^\.NAME/, '')} ${schema.description ?? ''}`,
        ),
      ),
    ].join();
    const same = children.length > 1 ? described.get(contents) : undefined;
    if (same === undefined)
      described.set(contents, children[0]?.path.startsWith(`${key.path}.NAME.`) ? `${key.path}.NAME` : key.path);
    rows.set(key.path, { key, ...(same !== undefined && { same }) });
  }
  return [...rows.values()];
}

export function renderPolicyReference(): string {
  const described = new Map<string, string>();
  const parts = sections().map(({ title, text, keys }) => {
    const rows = rowsOf(keys, described).map(({ key, same }) => [
      `\`${key.path}\``,
      same !== undefined && key.path === 'at' ? 'When.' : (key.schema.description ?? ''),
      `${same === undefined ? formOf(key.schema) : `${formOf(key.schema)}: the keys of \`${same}\``}${defaultOf(key)}`,
    ]);
    return `## ${title}\n\n${text}\n\n${table(['key', 'meaning', 'form'], rows)}\n`;
  });
  return `# Reference of the policy language

${GENERATED}

Every key of a policy file. [policies.md](policies.md) explains how they work together. \`[]\` stands for each entry of a list,
\`NAME\` for a name that you choose. A key that is not marked as required is optional.

${parts.join('\n')}`;
}
