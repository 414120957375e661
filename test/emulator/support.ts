import { expect } from 'vitest';
import type { Fleet, FleetCompute } from '../../src/emulator/fleet.ts';
import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator/server.ts';
import { problemsWith } from './openapi.ts';

/** Monday, 09:00 UTC. */
export const START_MS = Date.parse('2026-11-23T09:00:00Z');

export function compute(changes: Partial<FleetCompute> & { id: string }): FleetCompute {
  return {
    branchId: `br-${changes.id}`,
    type: 'read_write',
    minCu: 1,
    maxCu: 2,
    suspendTimeoutSeconds: 300,
    state: 'idle',
    connections: 0,
    ...changes,
  };
}

export function fleetOf(...computes: FleetCompute[]): Fleet {
  return { projects: [{ id: 'shop', name: 'shop-prod', regionId: 'aws-eu-central-1', pgVersion: 17, computes }] };
}

export interface Call {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape
  body: any;
  headers: Headers;
}

export interface TestEmulator {
  emulator: Emulator;
  /** Lets simulated time pass. */
  pass(ms: number): void;
  nowMs(): number;
  /** A call below /api/v2 with the key. Every answer is checked against the vendor's document. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Call>;
  /** A call below /_emulator. */
  control(method: string, path: string, body?: unknown): Promise<Call>;
}

async function send(method: string, url: string, body: unknown, headers: Record<string, string>): Promise<Call> {
  const response = await fetch(url, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers };
}

/** An emulator whose time stands still until the test lets it pass. */
export async function startTestEmulator(options: Partial<EmulatorOptions> & { fleet: Fleet }): Promise<TestEmulator> {
  let nowMs = START_MS;
  const emulator = await startEmulator({
    listen: { host: '127.0.0.1', port: 0 },
    operationTimeMs: 1000,
    clock: { now: () => nowMs, realDelayMs: (instantMs) => Math.max(0, instantMs - nowMs) },
    ...options,
  });
  return {
    emulator,
    pass: (ms) => {
      nowMs += ms;
    },
    nowMs: () => nowMs,
    async call(method, path, body, headers) {
      const authorization = `Bearer ${emulator.apiKey}`;
      const answer = await send(method, `${emulator.url}${path}`, body, { authorization, ...headers });
      expect(problemsWith(method, path, answer.status, answer.body), `${method} ${path}`).toEqual([]);
      return answer;
    },
    control: (method, path, body) => send(method, `${emulator.origin}/_emulator${path}`, body, {}),
  };
}
