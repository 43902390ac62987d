import type { Payloads } from '../../../core/protocol/messages.ts'
import { expandPath, isSafeInPath, pathFault } from '../../../core/tasks/remote-path.ts'
import { runsScript } from '../../../core/tasks/task.ts'
import { fetchBound } from '../../files/append-upload.ts'
import type { GateScript, TaskGates, TaskRecord } from '../../storage/records/task.ts'

/** What an agent runs that does not know what an upgrade is. */
const tooOld = `echo "the agent of this host cannot upgrade itself yet: install rsm there again (rsm hosts join)" >&2
exit 126`

/** What makes an agent execute something. */
type OrderType = 'EXECUTE_SCRIPT' | 'COPY_FILE' | 'FETCH_FILE'

/** An order of a task, before it is bound to a link and signed. */
export type Order = {
  [T in OrderType]: {
    readonly type: T
    readonly payload: Omit<Payloads[T], 'expiry' | 'signature' | 'keyId'>
  }
}[OrderType]

interface Given {
  /** Values of the task's secret params. */
  readonly secrets: Readonly<Record<string, string>>
  /** Bytes of what a host may send. */
  readonly maxFileSize: number
}

/** What follows on the script, and the script itself, which stands beside them. */
function gatesOf({
  script,
  verify,
  rollback,
}: TaskGates): Pick<Payloads['EXECUTE_SCRIPT'], 'script' | 'verify' | 'rollback'> {
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

/** Turns a script's name into a file name; undefined if no character is usable. */
function fileName(name: string | null): string | undefined {
  const fit = (name ?? '').replace(/[^A-Za-z0-9._+-]+/g, '_').replace(/^[^A-Za-z0-9]+/, '')
  return fit.slice(0, 64) || undefined
}

/** What the agents of a task's hosts are told. */
export function orderOf(task: TaskRecord, { secrets, maxFileSize }: Given): Order {
  const { id: taskId, timeout, runAs, maxOutputBytes, copy, fetch } = task
  const shared = { taskId, timeout, ...(runAs === null ? {} : { runAs }), maxOutputBytes }
  if (copy) return { type: 'COPY_FILE', payload: { ...shared, copy } }
  if (fetch) {
    const maxSize = fetchBound(task, maxFileSize)
    return { type: 'FETCH_FILE', payload: { ...shared, fetch: { ...fetch, maxSize } } }
  }
  const scriptName = fileName(task.scriptName)
  const payload = {
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
  }
  return { type: 'EXECUTE_SCRIPT', payload }
}

/** The same order for one host, whose name may stand in its path; `about`: what a script is told of the host. */
export function orderFor(
  order: Order,
  hostname: string,
  about: Readonly<Record<string, string>> = {},
): Order {
  switch (order.type) {
    case 'EXECUTE_SCRIPT': {
      const { payload } = order
      return { ...order, payload: { ...payload, params: { ...payload.params, ...about } } }
    }
    case 'COPY_FILE': {
      const { copy } = order.payload
      return { ...order, payload: { ...order.payload, copy: { ...copy, path: pathOn(hostname, copy.path) } } }
    }
    case 'FETCH_FILE': {
      const { fetch } = order.payload
      return {
        ...order,
        payload: { ...order.payload, fetch: { ...fetch, path: pathOn(hostname, fetch.path) } },
      }
    }
  }
}

const pathOn = (hostname: string, path: string): string => expandPath(path, hostname) ?? path

/** Why the path of a task can not be one on this host, or null. */
export function unfitPath({ copy, fetch }: TaskRecord, hostname: string): string | null {
  const { path = '', kind = 'FILE' } = copy ?? fetch ?? {}
  if (path === '' || expandPath(path, hostname) === expandPath(path, 'host')) return null
  if (!isSafeInPath(hostname)) return 'not started: the name of this host cannot stand in a path'
  const fault = pathFault(pathOn(hostname, path), kind)
  return fault === null ? null : `not started: the path with the name of this host ${fault}`
}
