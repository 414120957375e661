import Table from 'cli-table3';
import pc from 'picocolors';

/** One compute's day with ebb, and the same day without it. */
export interface ComputeDay {
  project: string;
  changes: number;
  restarts: number;
  connectionsDropped: number;
  cuHours: Range;
  cuHoursWithout: Range;
}

/** From "it always ran at its minimum" to "always at its maximum". */
export interface Range {
  low: number;
  high: number;
}

/** The table at the end of the day, with a sum. */
export function closingTable(days: readonly ComputeDay[]): string {
  const table = new Table({
    head: ['compute', 'changes', 'restarts', 'connections dropped', 'CU-hours with ebb', 'as it was', 'saved'],
    colAligns: ['left', 'right', 'right', 'right', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  });
  for (const day of days) table.push(row(day.project, day));
  table.push(row(pc.bold('all'), total(days)));
  return table.toString();
}

function row(name: string, day: Omit<ComputeDay, 'project'>): string[] {
  return [
    name,
    String(day.changes),
    String(day.restarts),
    String(day.connectionsDropped),
    formatRange(day.cuHours),
    formatRange(day.cuHoursWithout),
    saved(day),
  ];
}

function total(days: readonly ComputeDay[]): Omit<ComputeDay, 'project'> {
  const sum = (pick: (day: ComputeDay) => number) => days.reduce((all, day) => all + pick(day), 0);
  return {
    changes: sum((day) => day.changes),
    restarts: sum((day) => day.restarts),
    connectionsDropped: sum((day) => day.connectionsDropped),
    cuHours: { low: sum((day) => day.cuHours.low), high: sum((day) => day.cuHours.high) },
    cuHoursWithout: { low: sum((day) => day.cuHoursWithout.low), high: sum((day) => day.cuHoursWithout.high) },
  };
}

function formatRange({ low, high }: Range): string {
  return `${low.toFixed(1)}–${high.toFixed(1)}`;
}

function saved({ cuHours, cuHoursWithout }: Omit<ComputeDay, 'project'>): string {
  const share = (withEbb: number, without: number) => (without === 0 ? 0 : Math.round((1 - withEbb / without) * 100));
  const shares = [share(cuHours.low, cuHoursWithout.low), share(cuHours.high, cuHoursWithout.high)].sort(
    (a, b) => a - b,
  );
  return shares[0] === shares[1] ? `${shares[0]} %` : `${shares[0]}–${shares[1]} %`;
}
