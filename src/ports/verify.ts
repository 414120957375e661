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

/** The rate limit headers in answers; `values` are their distinct values. */
export interface LimitsSeen {
  answers: number;
  withLimit: number;
  values: readonly string[];
}

/** The control API for `ebb verify`: bounded, and it writes to one project only. */
export interface VerifyApi
  extends Pick<
    ControlApi,
    'listProjects' | 'listComputes' | 'listBranches' | 'operationsFrom' | 'updateCompute' | 'restartCompute'
  > {
  project(options?: CallOptions): Promise<ApiResult<{ name: string; createdAtMs: number; branchBytes: number }>>;
  sent(): readonly SentRequest[];
  limits(): LimitsSeen;
  /** Allows the requests that were reserved for putting settings back. */
  releaseReserve(): void;
  close(): Promise<void>;
}

export interface DatabaseSession {
  /** Runs a short statement. Rejects if the session has ended. */
  use(): Promise<void>;
  /** Starts a statement that runs until the session ends. */
  work(): void;
  isOpen(): boolean;
  close(): Promise<void>;
}

/** The compute's database. Connecting wakes the compute. */
export interface Database {
  /** A message if this is not the database of the compute with this host name. */
  refusalFor(host: string | undefined): string | undefined;
  connect(signal: AbortSignal): Promise<DatabaseSession>;
}

/** A compute's settings before the first write of `ebb verify`. */
export interface KeptSettings {
  account: string;
  projectId: string;
  computeId: string;
  settings: ComputeSettings;
}

/** Storage that outlives the process. */
export interface SettingsKeeper {
  keep(kept: KeptSettings): Promise<void>;
  read(): Promise<KeptSettings | undefined>;
  remove(): Promise<void>;
}
