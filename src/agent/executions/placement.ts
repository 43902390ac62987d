import { RsmError } from '../../core/errors.ts'
import type { ExecuteScript } from '../../core/protocol/messages.ts'
import type { Step } from '../../core/tasks/gates.ts'
import { lowerLimits } from '../../core/tasks/limits.ts'
import type { Account } from '../processes/account.ts'
import { ownProcesses, type Start } from '../processes/launch.ts'
import { markOf } from '../processes/machine.ts'
import { originOf } from '../processes/origin.ts'
import type { Started } from './journaled.ts'
import type { RunnerOptions } from './runner-options.ts'
import { identityOf } from './steps.ts'

/**
 * Settles in what box and under which limits a script starts, makes the cgroups that hold it, and says what the journal
 * keeps of it. Throws RsmError where it must not run, or not so.
 */
export function place(
  request: ExecuteScript,
  step: Step,
  directory: string,
  account: Account,
  options: RunnerOptions,
): { start: Start; started: Started } {
  const { sandbox, limiter, containment, ceiling, journal, clock, machine } = options
  const { taskId, workDir } = request
  sandbox.admit(account)
  if (workDir !== undefined && sandbox.hides(workDir, account))
    throw new RsmError('not_found', `the working directory ${workDir} is not in the sandbox of this agent`)
  const { phase, attempt } = step
  const identity = identityOf(taskId, step)
  const cgroup = containment.create(identity)
  const limits = lowerLimits(request.limits ?? {}, ceiling)
  const limited = limiter.create(identity, limits, cgroup, ownProcesses(sandbox))
  const mark = markOf(journal.storeId, identity)
  const start = { directory, account, mark, sandbox, cgroup, limitGroups: limited.groups }
  const started: Started = {
    e: 'started',
    taskId,
    ...originOf(directory, machine),
    startedAt: new Date(clock.now()).toISOString(),
    uptime: machine.uptime(),
    timeout: request.timeout,
    maxOutputBytes: request.maxOutputBytes,
    cgroup,
    uid: account.uid,
    mark,
    ...(phase === 'SCRIPT' ? {} : { phase, attempt }),
    ...(limited.groups.length > 0 ? { limited } : {}),
    ...(sandbox.mode === 'strict' ? { isBoxed: true } : {}),
  }
  return { start, started }
}
