import fc from 'fast-check'
import { RsmError } from '../../src/core/errors.ts'
import { isFinal, type ResultStatus } from '../../src/core/tasks/task.ts'
import {
  asBegun,
  asDue,
  asLost,
  asNamed,
  asOwnEnd,
  asRefused,
  asRemoved,
  asReturned,
  asRevoked,
  asSkipped,
  asUnreachable,
} from '../../src/server/storage/executions/transitions.ts'
import type { LinkClaim, Member } from '../../src/server/storage/ports/cluster.ts'
import type { RunningExecution } from '../../src/server/storage/ports/executions.ts'
import { execution, task } from '../helpers/servers/store-records.ts'
import type { OpenedExecutions } from './executions.ts'

const at = '2026-01-01T00:00:00.000Z'
const hostIds = [1, 2]
const taskIds = ['t1', 't2', 'ssh']
const agent = { agentStoreId: 'journal', agentInstanceId: null, agentJournal: null }

/** Parameters of a step; each step uses the ones that it needs. */
interface Of {
  host: number
  task: string
  id: string
  claim: LinkClaim
  by: Member
  small: number
  text: string
  flag: boolean
}

/** Executions on which two lives of a server take steps over the links of two hosts. */
export interface SteppedExecutions extends OpenedExecutions {
  former: Member
  member: Member
  claims: Map<number, LinkClaim[]>
  /** Executions that an agent has acknowledged. */
  acknowledged: Set<string>
}

const ends = (ids: readonly string[]) => ids.map((id) => ({ id, error: 'why' }))
const onHost = (host: number) => [`t1/${host}`, `t2/${host}`]
const onHosts = (task: string) => hostIds.map((host) => `${task}/${host}`)

async function relink({ links, executions, member, claims }: SteppedExecutions, host: number) {
  const present = await links.holder(host)
  if (present) await links.release(present)
  const claimed = await links.claim(host, { server: member, agentId: `agent-${host}` }, () => undefined)
  if (!claimed) throw new Error('the claim is refused')
  claims.set(host, [...(claims.get(host) ?? []), claimed.claim])
  return executions.takeOver(claimed.claim, new Set())
}

async function append({ executions }: SteppedExecutions, { id, task, host, small, text }: Of) {
  const found = await executions.find(task, host)
  // An agent sends output of RUNNING executions only.
  if (found?.execution.status !== 'RUNNING') return null
  const sequence = found.output.storedSequence + small
  return executions.append(id, { taskId: task, stream: 'stdout', sequence, data: text }, undefined, true)
}

async function giveBack({ executions }: SteppedExecutions, { claim, host }: Of) {
  const found = await Promise.all(['t1', 't2'].map((task) => executions.find(task, host)))
  // An execution that was received has left the server.
  const ids = found.flatMap((one) => (one && !one.execution.named ? [one.execution.id] : []))
  return executions.transition(asReturned(claim, ids))
}

function settle({ executions }: SteppedExecutions, { id, task: taskId, flag }: Of) {
  const complete = { taskId, exitCode: flag ? 0 : 1, duration: 1, startedAt: at, completedAt: at }
  return executions.settle(id, { complete, incomplete: false })
}

async function late({ executions }: SteppedExecutions, { task, host, small }: Of) {
  const found = await executions.find(task, host)
  if (found && !isFinal(found.execution.status)) return null
  return executions.late(task, host, { status: 'FAILED', exitCode: small, signal: null, completedAt: at })
}

const ended = { status: 'FAILED', exitCode: 2, error: 'why' } as const

async function name({ executions, acknowledged }: SteppedExecutions, { claim, host }: Of) {
  const changed = await executions.transition(asNamed(claim, onHost(host)))
  // Acknowledgements are written later: whether this step is ahead of them is a matter of time.
  return changed.filter(({ id }) => !acknowledged.has(id))
}

// Only agents acknowledge an execution.
async function receive({ executions, acknowledged }: SteppedExecutions, { id, task }: Of) {
  if (task === 'ssh') return null
  acknowledged.add(id)
  return executions.received(id)
}

/** Steps that servers may take on executions at any time. */
const steps = {
  relink: (on, { host }) => relink(on, host),
  take: ({ executions }, { claim, small }) => executions.take([{ claim, capacity: small, agent }]),
  return: giveBack,
  name,
  refuse: ({ executions }, { claim, host }) => executions.transition(asRefused(claim, ends(onHost(host)))),
  lose: ({ executions }, { claim, host }) =>
    executions.transition(asLost({ link: claim }, ends(onHost(host)))),
  giveUp: ({ executions }, { by, task }) => executions.transition(asLost({ owner: by }, ends(onHosts(task)))),
  receive,
  append,
  settle,
  late,
  due: ({ executions }, { by, id }) => executions.transition(asDue(by, [id])),
  skip: ({ executions }, { by, id }) => executions.transition(asSkipped(by, [id], 'why')),
  unreachable: ({ executions }, { by, id }) => executions.transition(asUnreachable(by, ends([id]))),
  begin: ({ executions }, { by, id }) => executions.transition(asBegun(by, [id])),
  end: ({ executions }, { by, id }) => executions.transition(asOwnEnd(by, id, ended)),
  cancel: ({ executions }, { task }) => executions.cancel(task),
  cancelPending: ({ executions }, { task }) => executions.cancel(task, { pendingOnly: true, error: 'held' }),
  abandon: ({ executions }, { host }) => executions.transition(asRemoved(host)),
  revoke: ({ executions }, { host }) => executions.transition(asRevoked(host)),
  hold: ({ executions }, { task }) => executions.held.add([task]),
  release: ({ executions }) => executions.held.clear(),
  pause: ({ executions }, { by, task }) => executions.pause(by, task, at),
  finish: ({ executions }, { by, task }) => executions.finish(by, task),
} satisfies Record<string, (on: SteppedExecutions, of: Of) => Promise<unknown>>

type Step = keyof typeof steps
const usual = [
  'take',
  'append',
  'settle',
  'due',
  'begin',
  'end',
  'receive',
  'name',
  'relink',
  'return',
] as const
const isUsual = (step: string) => (usual as readonly string[]).includes(step)
const rare = (Object.keys(steps) as Step[]).filter((step) => !isUsual(step))

/** Mostly steps that keep executions running: steps that end everything leave nothing to do. */
export const executionStep = fc.record({
  step: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom<Step[]>(...usual) },
    { weight: 1, arbitrary: fc.constantFrom(...rare) },
  ),
  host: fc.constantFrom(...hostIds),
  task: fc.constantFrom(...taskIds),
  isFormer: fc.nat({ max: 4 }).map((number) => number === 0),
  small: fc.integer({ min: 0, max: 2 }),
  text: fc.string({ maxLength: 5 }),
  flag: fc.boolean(),
})
export type ExecutionStep = typeof executionStep extends fc.Arbitrary<infer S> ? S : never

/** Creates tasks on both hosts, one of them over SSH, and links that were replaced once. */
export async function beginSteps(opened: OpenedExecutions): Promise<SteppedExecutions> {
  const { ownership, executions } = opened
  const former = await ownership.join('server')
  const member = await ownership.join('server')
  await ownership.claim(member, taskIds)
  for (const one of taskIds) {
    const all = hostIds.map((hostId, position) => ({
      ...execution(one, hostId),
      position,
      dueAt: position === 0 ? at : null,
      ...(one === 'ssh' && { overSsh: true as const }),
    }))
    await executions.create(task(one, { hostCount: all.length }), all, async () => null)
  }
  const on = {
    ...opened,
    former,
    member,
    claims: new Map<number, LinkClaim[]>(),
    acknowledged: new Set<string>(),
  }
  for (const host of [...hostIds, ...hostIds]) await relink(on, host)
  return on
}

const nameOf = (value: unknown) => JSON.stringify(value) ?? ''

/** Makes values comparable: replaces times, sorts sets, and drops `named` of ended executions. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
  if (typeof value === 'string') return /^\d{4}-\d\d-\d\dT/.test(value) ? 'time' : value
  if (typeof value !== 'object' || value === null) return value
  const { status } = value as { status?: ResultStatus }
  const saysNothing = (name: string) =>
    name === 'duration' || (name === 'named' && status !== undefined && isFinal(status))
  const fields = Object.entries(value).filter(([name, held]) => !saysNothing(name) && held !== undefined)
  return Object.fromEntries(fields.map(([name, held]) => [name, comparable(held)]))
}

const shown = ({ execution: one, output }: RunningExecution) => ({
  ...one,
  output: { stored: output.storedSequence, stdout: output.stdoutBytes, truncated: output.truncated },
})

/** Takes a step; returns its comparable outcome. */
export async function takeStep(on: SteppedExecutions, { step, ...of }: ExecutionStep): Promise<unknown> {
  const { host, task, isFormer } = of
  const claim = on.claims.get(host)?.at(isFormer ? -2 : -1)
  if (!claim) throw new Error('the host has had links')
  const by = isFormer ? on.former : on.member
  // Servers renew their lease on a timer; on a busy machine the steps take longer than it lasts.
  await on.ownership.renew(on.member)
  try {
    const answer: unknown = await steps[step](on, { ...of, id: `${task}/${host}`, claim, by })
    if (step !== 'relink') return comparable(answer)
    return comparable((answer as RunningExecution[]).map(shown))
  } catch (error) {
    if (error instanceof RsmError) return { error: error.code }
    throw error
  }
}

/** The complete state of executions after a step. */
export async function known({ executions, results, store }: SteppedExecutions): Promise<unknown> {
  const ofTask = async (one: string) => ({
    record: await store.get('tasks', one),
    executions: (await executions.page(one)).map(shown),
    found: (await Promise.all(hostIds.map((host) => executions.find(one, host)))).map(
      (found) => found && shown(found),
    ),
    counts: await executions.counts(one),
    results: await results.read(one),
  })
  const ofHost = async (host: number) => ({
    host,
    ids: (await executions.ofHost(host)).map((running) => running.execution.id),
  })
  return comparable({
    tasks: await Promise.all(taskIds.map(ofTask)),
    hosts: await Promise.all(hostIds.map(ofHost)),
    waiting: await executions.waiting(hostIds),
    running: await executions.running(),
    load: await executions.load(),
    held: executions.held.ids(),
  })
}
