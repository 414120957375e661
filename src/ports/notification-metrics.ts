/** The metrics of notifications, a part of `METRICS`. */
export const NOTIFICATION_METRICS = {
  ebb_notifications_total: {
    type: 'counter',
    help: 'Attempts to send a notification, by receiver: sent, failed (it is tried again), or dead (it is not).',
    labels: ['receiver', 'result'],
  },
  ebb_notifications_waiting: {
    type: 'gauge',
    help: 'Notifications that wait to be sent, by receiver.',
    labels: ['receiver'],
  },
  ebb_notifications_oldest_seconds: {
    type: 'gauge',
    help: 'Age of the oldest notification that waits to be sent, by receiver; 0 if none waits.',
    labels: ['receiver'],
  },
  ebb_notifications_dead: {
    type: 'gauge',
    help: 'Notifications that could not be sent and are not tried again until a person says so (`ebb notify retry`, `ebb notify drop`).',
    labels: ['receiver'],
  },
  ebb_notifications_lost: {
    type: 'gauge',
    help: 'Notifications that were never sent because more came than the store keeps, since the store was made.',
    labels: [],
    zero: [{}],
  },
} as const;
