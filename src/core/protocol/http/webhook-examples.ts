/** Examples of webhooks for the API's own document; see fleet-examples.ts. */

import { taskId } from './work-examples.ts'

export const webhookCreate = {
  name: 'on call',
  url: 'https://alerts.example.org/rsm',
  events: ['task.failed', 'host.offline'],
  selector: '@production',
  schedule: '*',
}

export const webhookPatch = { events: ['task.failed'], selector: null }

export const webhook = {
  id: 3,
  ...webhookCreate,
  script: null,
  createdBy: null,
  format: 'JSON',
  enabled: true,
  owner: 'maria',
  createdAt: '2026-03-02T09:00:00.000Z',
  updatedAt: '2026-03-02T09:00:00.000Z',
}

export const webhookSaved = { ...webhook, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }

export const webhookTest = { delivered: false, status: 503, error: 'the receiver answered 503' }

export const delivery = {
  id: '01JNAVB7T0K4W8M2X6Q9R3C5DZ',
  event: 'task.failed',
  at: '2026-03-02T09:30:12.480Z',
  data: {
    taskId,
    status: 'FAILED',
    type: 'BASH',
    script: 'deploy',
    createdBy: 'maria',
    scheduleId: 3,
    schedule: 'nightly',
    hostCount: 2,
    counts: { SUCCESS: 1, FAILED: 1 },
    nodes: 'web1',
    count: 1,
    completedAt: '2026-03-02T09:30:12.480Z',
    duration: 4120,
    url: `https://rsm.example.org/#/tasks/${taskId}`,
  },
  status: 'WAITING',
  tries: 2,
  nextAt: '2026-03-02T09:30:48.112Z',
  lastStatus: 503,
  lastError: 'the receiver answered 503',
  endedAt: null,
}
