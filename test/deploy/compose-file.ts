/** docker-compose.yml as `docker compose` reads it, with the variables of an env file filled in. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

interface Mount {
  type: string;
  source: string;
  target: string;
  read_only?: boolean;
}

export interface Service {
  image: string;
  build?: string;
  command: string[];
  profiles?: string[];
  environment?: Record<string, string>;
  volumes?: (string | Mount)[];
  ports?: string[];
  secrets?: string[];
  tmpfs?: string[];
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  restart?: string;
  healthcheck?: { test: string[] };
}

export interface Compose {
  services: Record<string, Service>;
  volumes: Record<string, null>;
  secrets: Record<string, { file: string }>;
}

/** `NAME=value` lines; comments and empty lines are left out. */
export function readEnvFile(path: string): Record<string, string> {
  const lines = readFileSync(path, 'utf8').split('\n');
  return Object.fromEntries(
    lines.flatMap((line) => {
      const match = /^(?<name>\w+)=(?<value>.*)$/.exec(line);
      return match?.groups ? [[match.groups.name, match.groups.value]] : [];
    }),
  );
}

/** `${NAME:-default}` is the only form that the file uses. */
const VARIABLE = /\$\{(?<name>\w+):-(?<fallback>[^}]*)\}/g;

export function composeVariables(): string[] {
  return [...readFileSync('docker-compose.yml', 'utf8').matchAll(VARIABLE)].map((match) => match.groups?.name ?? '');
}

export function readCompose(env: Readonly<Record<string, string>> = {}): Compose {
  const text = readFileSync('docker-compose.yml', 'utf8').replace(
    VARIABLE,
    (_whole, name: string, fallback: string) => env[name] || fallback,
  );
  return parse(text, { merge: true }) as Compose;
}

/** The part of the compose file's service, which must be there. */
export function serviceOf({ services }: Compose, name: string): Service {
  const service = services[name];
  if (service === undefined) throw new Error(`docker-compose.yml has no service ${name}`);
  return service;
}

/** What of this folder a service sees, and where: named volumes are left out. */
export function bindsOf({ volumes = [] }: Service): { source: string; target: string }[] {
  return volumes
    .map((mount) => {
      if (typeof mount !== 'string') return mount;
      const [source = '', target = ''] = mount.split(':');
      return { source, target };
    })
    .filter(({ source }) => source.startsWith('.') || source.startsWith('/'));
}
