import test from 'ava'
import { createRequestLevel } from '../../../src/server/http/app.ts'

test('readiness checks are logged only when their answer changes', (t) => {
  const levelOf = createRequestLevel()
  t.deepEqual(
    [200, 200, 200, 503, 503, 503, 200, 200].map((status) => levelOf('/api/ready', status)),
    ['info', 'debug', 'debug', 'warn', 'debug', 'debug', 'info', 'debug'],
  )
})

test('requests are logged at DEBUG unless refused or failed; refusals of agents stay at DEBUG', (t) => {
  const levelOf = createRequestLevel()
  for (const [route, status, level] of [
    ['/api/health', 200, 'debug'],
    ['/metrics', 200, 'debug'],
    ['/metrics', 401, 'info'],
    ['/metrics', 401, 'info'],
    ['/metrics', 503, 'warn'],
    ['/api/agent/heartbeat', 200, 'debug'],
    ['/api/agent/heartbeat', 401, 'debug'],
    ['/api/agent/heartbeat', 500, 'warn'],
    ['/api/tasks', 200, 'debug'],
    ['/api/tasks', 202, 'debug'],
    ['/api/tasks', 401, 'info'],
    ['/api/tasks', 404, 'info'],
    ['/api/tasks', 500, 'warn'],
  ] as const)
    t.is(levelOf(route, status), level, `${route} ${status}`)
})
