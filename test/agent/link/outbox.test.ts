import test from 'ava'
import { Uplink } from '../../../src/agent/link/outbox.ts'

type Parts = ConstructorParameters<typeof Uplink>

test('P48 the answer to a HELLO allows what waits for it, also where it comes after the server was asked again', (t) => {
  const answers: [string, boolean][] = []
  const execution = (taskId: string) => ({
    taskId,
    state: 'QUEUED',
    isDurable: true,
    step: {},
    spool: { next: 0 },
  })
  const runner = {
    executions: new Map(['late', 'refused'].map((taskId) => [taskId, execution(taskId)])),
    subscribe: () => undefined,
    unlinked: () => undefined,
    answered: (taskId: string, isRefused: boolean) => answers.push([taskId, isRefused]),
  } as unknown as Parts[0]
  const uplink = new Uplink(runner, {} as Parts[1])
  uplink.begin({ hasRoom: () => false } as unknown as Parameters<Uplink['begin']>[0])
  uplink.probe()
  uplink.acknowledged({ taskId: 'late', sequence: -1 })
  uplink.acknowledged({ taskId: 'late', sequence: -1 })
  uplink.acknowledged({ taskId: 'refused', sequence: -1, noStart: true })
  t.deepEqual(answers, [
    ['late', false],
    ['refused', true],
  ])
})
