import { dirname, resolve } from 'node:path';
import type { ConfigFile } from './config-file.ts';
import { SETTINGS, type SettingDeclaration } from './declarations.ts';
import { type SettingName, splitPolicyPaths } from './schema.ts';
import { type Secret, secret } from './secret.ts';

/** The variables of the process, read once at the start. */
export type Environment = Readonly<Record<string, string | undefined>>;

const SOURCE_VARIABLE = /^EBB_(?:DSN_[A-Z0-9_]+|(?:PROMETHEUS_TOKEN|NOTIFY_SECRET|NOTIFY_URL)(?:_[A-Z0-9_]+)?)$/;

/** The values of the variables that sources and receivers may name. An empty variable counts as not set. */
export function sourceVariables(env: Environment): ReadonlyMap<string, Secret> {
  const found = Object.entries(env).filter(([name, value]) => SOURCE_VARIABLE.test(name) && value);
  return new Map(found.map(([name, value = '']) => [name, secret(value.trim())]));
}

/** Command-line flags, with commander's keys. There is no flag for an API key. */
export interface SettingsFlags {
  apiUrl?: string | undefined;
  mode?: string | undefined;
  queueUrl?: string | undefined;
  policies?: string | readonly string[] | undefined;
  listen?: string | undefined;
  /** Serves HTTP beyond this machine without a token. */
  insecure?: boolean | undefined;
}

/** A setting from a flag, a variable or the settings file, before it is parsed. */
interface SettingInput {
  value: unknown;
  source: 'flag' | 'variable' | 'file';
  /** `--mode`, `EBB_MODE` or `ebb.yaml:3:1`. */
  where: string;
  /** The base of relative paths. */
  base: string;
}

/** The settings that are set, by name. */
export type Inputs = ReadonlyMap<SettingName, SettingInput>;

/** Takes each setting from a flag, otherwise from a variable, otherwise from the file. An empty variable counts as not set. */
export function gatherInputs(options: {
  flags: SettingsFlags;
  env: Environment;
  config: ConfigFile;
  cwd: string;
}): Inputs {
  const { flags, env, config, cwd } = options;
  const fromFlags = flagValues(flags);
  const fileBase = config.file === undefined ? cwd : dirname(resolve(cwd, config.file));
  const inputs = new Map<SettingName, SettingInput>();
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const { flag, variable }: SettingDeclaration = SETTINGS[name];
    const place = config.places.get(name);
    if (flag !== undefined && fromFlags[name] !== undefined) {
      inputs.set(name, { value: fromFlags[name], source: 'flag', where: flag, base: cwd });
    } else if (variable !== undefined && env[variable]) {
      inputs.set(name, { value: env[variable], source: 'variable', where: variable, base: cwd });
    } else if (place !== undefined) {
      inputs.set(name, { value: config.values[name], source: 'file', where: place, base: fileBase });
    }
  }
  return inputs;
}

function flagValues(flags: SettingsFlags): Partial<Record<SettingName, unknown>> {
  const { policies } = flags;
  return {
    api_url: flags.apiUrl,
    mode: flags.mode,
    queue_url: flags.queueUrl,
    policies: policies === undefined || typeof policies === 'string' ? policies : policies.flatMap(splitPolicyPaths),
    listen: flags.listen,
  };
}
