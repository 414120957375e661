/** The routes of `/api/v1`: for the server, for those who ask it, and for the OpenAPI document. `{id}` stands for an id. */
export const API_PATHS = {
  status: ['get', '/status'],
  computes: ['get', '/computes'],
  compute: ['get', '/computes/{id}'],
  fleet: ['get', '/fleet'],
  decisions: ['get', '/decisions'],
  audit: ['get', '/audit'],
  plan: ['get', '/plan'],
  records: ['get', '/records'],
  usage: ['get', '/usage'],
  waste: ['get', '/waste'],
  notifications: ['get', '/notifications'],
  retryOrDropNotifications: ['post', '/notifications'],
  holds: ['get', '/holds'],
  hold: ['post', '/holds'],
  endHold: ['delete', '/holds/{id}'],
  freezes: ['get', '/freezes'],
  freeze: ['post', '/freezes'],
  unfreezeAll: ['delete', '/freezes'],
  unfreeze: ['delete', '/freezes/{id}'],
  release: ['post', '/release'],
  approve: ['post', '/approve'],
  restore: ['post', '/restore'],
} as const satisfies Record<string, readonly [method: 'get' | 'post' | 'delete', path: `/${string}`]>;

export type RouteName = keyof typeof API_PATHS;
