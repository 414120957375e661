import type { ComputeSettings } from '../domain/compute/compute.ts';
import type { ApiResult, CallOptions, ControlApi } from './control-api.ts';

/** A request that `ebb verify` has sent. */
export interface SentRequest {
  /** Milliseconds since the epoch. */
  atMs: number;
  /** Method and path template: no ids. */
  route: string;
  /** HTTP status; absent without an answer. */
  status?: number;
}

/** What answers said about rate limits: each value of a header whose name says so, once. */
export interface LimitsSeen {
  answers: number;
  withLimit: number;
  values: readonly string[];
}

/** The control API as `ebb verify` may use it: bounded, and writing to one project only. */
export interface VerifyApi
  extends Pick<
    ControlApi,
    'listProjects' | 'listComputes' | 'listBranches' | 'operationsFrom' | 'updateCompute' | 'restartCompute'
  > {
  project(options?: CallOptions): Promise<ApiResult<{ name: string; createdAtMs: number; branchBytes: number }>>;
  sent(): readonly SentRequest[];
  limits(): LimitsSeen;
  /** From now on also what is reserved for putting settings back may be sent. */
  releaseReserve(): void;
  close(): Promise<void>;
}

/** A session with the database of the compute. */
export interface DatabaseSession {
  /** Runs a short statement. Rejects where the session has ended. */
  use(): Promise<void>;
  /** Starts a statement that runs until the session ends. */
  work(): void;
  isOpen(): boolean;
  close(): Promise<void>;
}

/** The compute's database; connecting wakes the compute. */
export interface Database {
  /** Why its server is not the one of a compute with this host name; undefined if it is. */
  refusalFor(host: string | undefined): string | undefined;
  connect(signal: AbortSignal): Promise<DatabaseSession>;
}

/** What a compute had before the first write of `ebb verify`. */
export interface KeptSettings {
  account: string;
  projectId: string;
  computeId: string;
  settings: ComputeSettings;
}

/** Outlives the process. */
export interface SettingsKeeper {
  keep(kept: KeptSettings): Promise<void>;
  read(): Promise<KeptSettings | undefined>;
  remove(): Promise<void>;
}
