import { type Secret, secret } from './secret.ts';

/** The variables of the process, read once at the start. */
export type Environment = Readonly<Record<string, string | undefined>>;

const SOURCE_VARIABLE = /^EBB_(?:DSN_[A-Z0-9_]+|PROMETHEUS_TOKEN(?:_[A-Z0-9_]+)?)$/;

/** The variables that sources may name, whether one does or not; an empty one counts as not set. */
export function sourceVariables(env: Environment): ReadonlyMap<string, Secret> {
  const given = Object.entries(env).filter(([name, value]) => SOURCE_VARIABLE.test(name) && value);
  return new Map(given.map(([name, value = '']) => [name, secret(value.trim())]));
}
