/** A request that came in, as `GET /_emulator/requests` shows it. Headers, and so the key, are never kept. */
export interface RecordedRequest {
  /** ISO 8601, of the emulator's clock, when the request arrived. */
  at: string;
  method: string;
  /** With the query, as it was sent. */
  path: string;
  /** The template, e.g. `/projects/{project_id}`; absent for a path that the API doesn't have. */
  route?: string;
  status: number;
  body?: unknown;
  request_id: string;
}

export interface RequestLog {
  add(request: RecordedRequest): void;
  /** The newest ones, oldest first, and how many older ones are no longer kept. */
  read(): { requests: RecordedRequest[]; forgotten: number };
  clear(): void;
}

export function createRequestLog(capacity: number): RequestLog {
  let requests: RecordedRequest[] = [];
  let forgotten = 0;
  return {
    add(request) {
      requests.push(request);
      // Forgetting in halves keeps adding cheap.
      if (requests.length < 2 * capacity) return;
      requests = requests.slice(-capacity);
      forgotten += capacity;
    },
    read: () => ({ requests, forgotten }),
    clear() {
      requests = [];
      forgotten = 0;
    },
  };
}
