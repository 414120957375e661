import type { Log } from '../../src/ports/telemetry.ts';

export interface LogLine {
  level: keyof Log;
  fields: object;
  message: string;
}

export type MemoryLog = Log & { lines: LogLine[] };

/** A log whose lines a test can look at. */
export function memoryLog(): MemoryLog {
  const lines: LogLine[] = [];
  const write = (level: keyof Log) => (fields: object, message: string) => {
    lines.push({ level, fields, message });
  };
  return { lines, debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
