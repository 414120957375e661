/** What a person or a program may ask of a running daemon over HTTP. */
export interface Readiness {
  ready: boolean;
  /** One line for each part that must be there: queue, store, policies, control API. */
  checks: { name: string; ok: boolean; message: string }[];
}

export interface Operator {
  readiness(): Promise<Readiness>;
  /** The whole of /metrics in the Prometheus text format. */
  metricsText(): Promise<{ contentType: string; body: string }>;
}
