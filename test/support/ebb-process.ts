/** Runs the real command as a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { inject } from 'vitest';

export interface LogLine {
  event?: string;
  mode?: string;
  phase?: string;
  outcome?: string;
  compute?: string;
  [field: string]: unknown;
}

export interface EbbProcess {
  child: ChildProcess;
  /** What it wrote to standard output so far, line by line. */
  lines: string[];
  /** Those lines that are JSON. */
  logs(): LogLine[];
  stderr(): string;
  /** Resolves with the exit code, or the signal that ended it. */
  ended: Promise<number | NodeJS.Signals | null>;
  /** Ends it at once, if it still runs. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

export function startEbb(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): EbbProcess {
  const child = spawn(process.execPath, [inject('ebbMain'), ...args], {
    cwd: options.cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: 'test', ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  let stderr = '';
  createInterface({ input: child.stdout }).on('line', (line) => void lines.push(line));
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.on('close', (code, signal) => resolve(code ?? signal));
  });
  return {
    child,
    lines,
    logs: () => lines.flatMap(parseLine),
    stderr: () => stderr,
    ended,
    async kill(signal = 'SIGKILL') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await ended;
    },
  };
}

function parseLine(line: string): LogLine[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}
