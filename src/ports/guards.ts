import type { Series } from '../domain/guards/verdict.ts';
import type { ConnectionSource } from '../domain/policy/policy.ts';
import type { SourceAnswer } from './connections.ts';

export type SeriesRead = SourceAnswer<Series[]>;

/** Instants from `fromMs` to `toMs`, `stepMs` apart; milliseconds. */
export interface SeriesRange {
  fromMs: number;
  toMs: number;
  stepMs: number;
}

/** Answers the queries of guards. Never throws; the source's answers are validated. */
export interface SeriesSource {
  /** The latest value of each series of the query. */
  latest(query: string, signal: AbortSignal): Promise<SeriesRead>;
  range(query: string, range: SeriesRange, signal: AbortSignal): Promise<SeriesRead>;
}

/** The sources of guards; each is opened when it is first asked for. */
export interface SeriesSources {
  of(source: ConnectionSource): SeriesSource;
  close(): Promise<void>;
}
