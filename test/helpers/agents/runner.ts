import { mkdirSync } from 'node:fs'
import type { ExecutionContext } from 'ava'
import { systemClock } from '../../../src/agent/clock.ts'
import type { Journal } from '../../../src/agent/executions/journal.ts'
import { Runner } from '../../../src/agent/executions/runner.ts'
import type { RunnerOptions } from '../../../src/agent/executions/runner-options.ts'
import { fileWork } from '../../../src/agent/files/order.ts'
import { ownAccount } from '../../../src/agent/processes/account.ts'
import { findContainment } from '../../../src/agent/processes/containment.ts'
import { findLimiter } from '../../../src/agent/processes/limits.ts'
import { thisMachine } from '../../../src/agent/processes/machine.ts'
import type { ScriptComplete } from '../../../src/core/protocol/messages.ts'
import type { ScriptOrder } from '../../../src/core/protocol/orders.ts'

export function request(taskId: string, script = 'true'): ScriptOrder {
  const unsigned = { expiry: '', signature: '', keyId: '' }
  return {
    kind: 'SCRIPT',
    taskId,
    script,
    timeout: 60,
    params: {},
    scriptType: 'BASH',
    maxOutputBytes: 1_000_000,
    ...unsigned,
  }
}

/** A runner of one script at a time, without a link; `ended` settles when the execution ends. Reading the boot id may fail. */
export function runnerOn(
  t: ExecutionContext,
  directory: string,
  journal: Journal,
  maxExecutions = 1,
  refuses: () => boolean = () => false,
  others: Partial<RunnerOptions> = {},
) {
  mkdirSync(directory, { recursive: true })
  const own = ownAccount()
  const answers: ScriptComplete[] = []
  const waiting = new Map<string, (complete: ScriptComplete) => void>()
  const runner = new Runner({
    directory,
    journal,
    clock: systemClock,
    machine: {
      ...thisMachine,
      bootId() {
        if (refuses()) throw new Error('EMFILE: too many open files, open')
        return thisMachine.bootId()
      },
    },
    containment: findContainment(journal.storeId),
    own,
    runAs: own.name,
    allowRunAs: [],
    sandbox: { mode: 'none', admit: () => {}, hides: () => false, enclose: () => null },
    limiter: findLimiter(journal.storeId, false),
    ceiling: {},
    upgrade: null,
    files: fileWork({ dataDir: directory, url: 'http://127.0.0.1:9' }),
    maxExecutions,
    verify: () => null,
    distrusted: () => {},
    hearServerTime: async () => false,
    log: () => {},
    ...others,
  })
  runner.subscribe({
    changed: ({ taskId, complete }) => complete && waiting.get(taskId)?.(complete),
    answer: (complete) => answers.push(complete),
  })
  t.teardown(async () => {
    await runner.stop()
    journal.close()
  })
  const ended = (taskId: string) =>
    new Promise<ScriptComplete>((resolve) => {
      const complete = runner.executions.get(taskId)?.complete
      if (complete) resolve(complete)
      else waiting.set(taskId, resolve)
    })
  /** As the server does after a HELLO. */
  const answered = (taskId: string, isRefused: boolean) => {
    const execution = runner.executions.get(taskId)
    if (execution) runner.permissions.answered(execution, isRefused)
  }
  return { runner, answers, ended, answered }
}
