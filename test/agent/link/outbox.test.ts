import test from 'ava'
import { Outbox } from '../../../src/agent/link/outbox.ts'

type Parts = ConstructorParameters<typeof Outbox>

test('P48 an acknowledgement of HELLO allows its execution, also after the agent has asked again', (t) => {
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
    permissions: {
      unlinked: () => undefined,
      answered: ({ taskId }: { taskId: string }, isRefused: boolean) => answers.push([taskId, isRefused]),
    },
  } as unknown as Parts[0]
  const outbox = new Outbox(runner, {} as Parts[1])
  outbox.begin({ hasRoom: () => false } as unknown as Parameters<Outbox['begin']>[0])
  outbox.probe()
  outbox.acknowledged({ taskId: 'late', sequence: -1 })
  outbox.acknowledged({ taskId: 'late', sequence: -1 })
  outbox.acknowledged({ taskId: 'refused', sequence: -1, noStart: true })
  t.deepEqual(answers, [
    ['late', false],
    ['refused', true],
  ])
})
