import type { ExecuteScript } from '../../../core/protocol/messages.ts'
import { type Order, scriptOrder } from '../../../core/protocol/orders.ts'
import { expandPath, pathFault } from '../../../core/tasks/remote-path.ts'
import { runsScript } from '../../../core/tasks/task.ts'
import { fetchBound } from '../../files/append-upload.ts'
import type { GateScript, TaskGates, TaskRecord } from '../../storage/records/task.ts'

/** Script sent as an upgrade to agents that do not know upgrades. */
const tooOld = `echo "the agent of this host cannot upgrade itself yet: install rsm there again (rsm hosts join)" >&2
exit 126`

interface Given {
  readonly secrets: Readonly<Record<string, string>>
  /** Largest file a host may send, in bytes. */
  readonly maxFileSize: number
}

function gatesOf({
  script,
  verify,
  rollback,
}: TaskGates): Pick<ExecuteScript, 'script' | 'verify' | 'rollback'> {
  const order = ({ content, type, timeout }: GateScript) => ({
    script: content ?? '',
    scriptType: type,
    timeout,
  })
  return {
    script: script ?? '',
    ...(verify && {
      verify: { ...order(verify), retries: verify.retries, intervalSeconds: verify.intervalSeconds },
    }),
    ...(rollback && { rollback: order(rollback) }),
  }
}

/** Undefined if no character is usable. */
function fileName(name: string | null): string | undefined {
  const fit = (name ?? '').replace(/[^A-Za-z0-9._+-]+/g, '_').replace(/^[^A-Za-z0-9]+/, '')
  return fit.slice(0, 64) || undefined
}

export function orderOf(task: TaskRecord, { secrets, maxFileSize }: Given): Order {
  const { id: taskId, timeout, runAs, maxOutputBytes, copy, fetch } = task
  const shared = { taskId, timeout, ...(runAs === null ? {} : { runAs }), maxOutputBytes }
  if (copy) return { kind: 'COPY', ...shared, copy }
  if (fetch) {
    const maxSize = fetchBound(task, maxFileSize)
    return { kind: 'FETCH', ...shared, fetch: { ...fetch, maxSize } }
  }
  const scriptName = fileName(task.scriptName)
  return scriptOrder({
    ...shared,
    ...(scriptName !== undefined && { scriptName }),
    script: task.content ?? '',
    params: { ...task.params, ...secrets },
    ...(task.workDir === null ? {} : { workDir: task.workDir }),
    scriptType: runsScript(task.type) ? task.type : 'BASH',
    ...(task.limits ? { limits: task.limits } : {}),
    ...(task.stdin && { stdin: task.stdin }),
    ...(task.upgrade && { upgrade: task.upgrade, script: tooOld }),
    ...(task.gates && gatesOf(task.gates)),
  })
}

/** Binds an order to one host: expands the path and adds `about`, the host's variables for scripts. */
export function orderFor(
  order: Order,
  hostname: string,
  about: Readonly<Record<string, string>> = {},
): Order {
  switch (order.kind) {
    case 'SCRIPT':
    case 'UPGRADE':
      return { ...order, params: { ...order.params, ...about } }
    case 'COPY':
      return { ...order, copy: { ...order.copy, path: pathOn(hostname, order.copy.path) } }
    case 'FETCH':
      return { ...order, fetch: { ...order.fetch, path: pathOn(hostname, order.fetch.path) } }
  }
}

const pathOn = (hostname: string, path: string): string => expandPath(path, hostname) ?? path

/** Why the expanded path is too long for this host, or null; the request validated everything else. */
export function unfitPath({ copy, fetch }: TaskRecord, hostname: string): string | null {
  const order = copy ?? fetch
  const fault = order ? pathFault(pathOn(hostname, order.path), order.kind) : null
  return fault === null ? null : `not started: the path with the name of this host ${fault}`
}
