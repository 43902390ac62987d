import { faultPoint } from '#fault-point'
import { faultInBrackets, wasStopped } from '../../core/host-status.ts'
import type { ExecuteScript } from '../../core/protocol/messages.ts'
import { hostVariables } from '../../core/script/host-variables.ts'
import { limitWords, notEnforced } from '../../core/task/limits.ts'
import { isoTime } from '../clock.ts'
import { signatureLife } from '../keys.ts'
import type { ExecutionRecord } from '../seams/records.ts'
import type { AgentLink } from './agent-link.ts'
import { openSecrets, sealedFault } from './secrets.ts'
import { type EngineState, ended, type HostLane, type Waiting } from './state.ts'
import type { TaskRun } from './task-run.ts'

/** How long a host that heartbeats without a link may take to come (contract §4). */
const defaultQueueSeconds = 120
/** How long one whose agent was stopped may: a restart of it takes no longer (contract §4). */
const stoppedQueueSeconds = 15
/** A base-protocol agent reports no capacity; this default stands for it (contract §9). */
const defaultCapacity = 16

type Variables = Readonly<Record<string, string>>

export interface Dispatcher {
  /** The turn of these positions has come: sends what can be sent, lets the rest wait. */
  offer(run: TaskRun, positions: readonly number[]): Promise<void>
  /** A host can take more: its link came up, or something ended on it. */
  pump(hostId: number): Promise<void>
  /** Sends an execution that is already marked as sent, once more. */
  resend(run: TaskRun, link: AgentLink): Promise<void>
  /** The link of a host went down: from now on its waiting executions count as not reachable. */
  unlinked(hostId: number): void
  /** Ends what has waited too long; takes up what a full disk had put off. */
  sweep(): Promise<void>
  /** Executions that wait for the host to connect. */
  waitingFor(hostId: number): string[]
}

function room(lane: HostLane): number {
  if (!lane.link) return 0
  return (lane.link.hello?.capabilities.maxExecutions ?? defaultCapacity) - lane.inFlight.size
}

/** Why a task may not go to this agent: one that does not know a limit, or a user, would run the script without it. */
function unfit({ task }: TaskRun, { hello }: AgentLink): string | null {
  if (task.runAs !== null && hello === null)
    return 'not started: the agent of this host can not run scripts as another user'
  if (!task.limits) return null
  const missing = notEnforced(task.limits, hello?.capabilities.limits ?? [])
  if (missing.length === 0) return null
  const words = missing.map((name) => limitWords[name]).join(' and ')
  return `not started: the agent of this host can not limit ${words}`
}

export function createDispatcher(state: EngineState): Dispatcher {
  const takingBack = new Set<string>()
  /** What a full disk kept from being taken back: no agent has it, and none is sent it before that is noted. */
  let notTakenBack: { run: TaskRun; positions: number[] }[] = []

  /** `about`: the variables that tell a script of its host. */
  function payload(run: TaskRun, about: Variables): Omit<ExecuteScript, 'expiry' | 'signature' | 'keyId'> {
    const { task } = run
    return {
      taskId: task.id,
      script: task.content ?? '',
      timeout: task.timeout,
      params: { ...task.params, ...openSecrets(state.keys, task), ...about },
      ...(task.workDir === null ? {} : { workDir: task.workDir }),
      scriptType: task.type,
      ...(task.runAs === null ? {} : { runAs: task.runAs }),
      ...(task.limits ? { limits: task.limits } : {}),
      maxOutputBytes: task.maxOutputBytes,
    }
  }

  /** What scripts are told of these hosts, by id; nothing for a base-protocol agent. */
  async function aboutHosts(links: Iterable<AgentLink | null>): Promise<Map<number, Variables>> {
    const ids = [...links].flatMap((link) => (link?.hello ? [link.hostId] : []))
    if (ids.length === 0) return new Map()
    const known = await state.knownHosts(ids)
    return new Map(known.map((host) => [host.id, hostVariables(host)]))
  }

  function send(run: TaskRun, link: AgentLink, about: ReadonlyMap<number, Variables>): boolean {
    const expiry = isoTime(state.clock.now() + signatureLife)
    const linkId = link.hello?.linkId
    const mark = link.hello ? state.serverRuns.mark() : null
    const bound = {
      ...payload(run, about.get(link.hostId) ?? {}),
      ...(mark && { mark }),
      ...(linkId === undefined ? {} : { linkId }),
    }
    const signed = state.keys.sign('EXECUTE_SCRIPT', link.agentId, bound, expiry)
    const hasLeft = link.send('EXECUTE_SCRIPT', signed)
    const lane = state.lane(link.hostId)
    if (hasLeft && lane.link === link) lane.named.add(run.task.id)
    return hasLeft
  }

  /** "Sent" is on disk before the frame leaves: at most one start per host and task (contract §4). */
  async function dispatch(run: TaskRun, chosen: ReadonlyMap<number, AgentLink | null>): Promise<void> {
    const at = isoTime(state.clock.now())
    const isSending = [...chosen.values()].some((link) => link !== null)
    const sealed = isSending ? sealedFault(state, run) : null
    const mark = (current: ExecutionRecord): ExecutionRecord | null => {
      if (current.status !== 'PENDING' || state.held.has(run.task.id)) return null
      const link = chosen.get(current.position)
      if (!link) return current.dueAt === null ? { ...current, dueAt: at } : null
      const why = sealed ?? unfit(run, link)
      if (why !== null) return { ...ended(current, 'FAILED', at, why), exitCode: 126 }
      return {
        ...current,
        status: 'RUNNING',
        dueAt: current.dueAt ?? at,
        sentAt: at,
        startedAt: at,
        agentStoreId: link.hello?.storeId ?? null,
        agentInstanceId: link.hello?.instanceId ?? null,
        agentJournal: link.hello?.journal?.sequence ?? null,
      }
    }
    let changed: ExecutionRecord[]
    let about: Map<number, Variables>
    try {
      about = await aboutHosts(chosen.values())
      faultPoint(isSending ? 'server.sent.before' : 'server.turn.before')
      changed = await state.change(run, chosen.keys(), mark)
      faultPoint(isSending ? 'server.sent.after' : 'server.turn.after')
    } catch (error) {
      state.log.warn({ err: error, taskId: run.task.id }, 'could not note executions as sent; trying again')
      for (const [position, link] of chosen) if (link) requeue(run, position)
      return
    }
    const unsent: number[] = []
    for (const execution of changed) {
      const link = chosen.get(execution.position)
      if (!link || execution.status !== 'RUNNING') continue
      run.live(execution.position, state.clock.monotonic()).lastWord = state.clock.monotonic()
      // The link may have gone, or been replaced by one that has said HELLO already, while "sent" went to disk.
      if (!send(run, link, about)) unsent.push(execution.position)
      else faultPoint('server.frame.after')
    }
    // A cancel that was faster leaves a place in the lane that nothing will free.
    for (const [position, link] of chosen) {
      const execution = run.executions[position]
      if (link && execution && execution.status !== 'RUNNING')
        state.lane(execution.hostId).inFlight.delete(execution.id)
    }
    if (unsent.length > 0) await takeBack(run, unsent)
  }

  /** Frames that never left: their executions are back in the queue, and no HELLO has them sent meanwhile. */
  async function takeBack(run: TaskRun, positions: number[]): Promise<void> {
    const ids = positions.map((position) => run.executions[position]?.id ?? '')
    for (const id of ids) takingBack.add(id)
    const at = isoTime(state.clock.now())
    const hosts = new Set<number>()
    try {
      faultPoint('server.returned.before')
      const unsent = {
        status: 'PENDING',
        sentAt: null,
        startedAt: null,
        agentStoreId: null,
        agentInstanceId: null,
        agentJournal: null,
      } as const
      const changed = await state.change(run, positions, (current) =>
        current.cancelRequested ? ended(current, 'CANCELLED', at, null) : { ...current, ...unsent },
      )
      faultPoint('server.returned.after')
      for (const { status, position, hostId } of changed) {
        if (status === 'PENDING') requeue(run, position)
        hosts.add(hostId)
      }
    } catch (error) {
      state.log.warn({ err: error, taskId: run.task.id }, 'could not note executions as unsent; trying again')
      notTakenBack.push({ run, positions })
      return
    }
    for (const id of ids) takingBack.delete(id)
    await Promise.all([...hosts].map((hostId) => pump(hostId)))
  }

  function requeue(run: TaskRun, position: number): void {
    const execution = run.executions[position]
    if (!execution) return
    const lane = state.lane(execution.hostId)
    lane.inFlight.delete(execution.id)
    lane.waiting.unshift({ run, position, since: state.clock.monotonic() })
  }

  async function pump(hostId: number): Promise<void> {
    const lane = state.lane(hostId)
    const byRun = new Map<TaskRun, Map<number, AgentLink | null>>()
    while (lane.link && lane.waiting.length > 0 && room(lane) > 0 && !state.stopping) {
      const next = lane.waiting.shift()
      const execution = next && next.run.executions[next.position]
      if (!next || execution?.status !== 'PENDING') continue
      lane.inFlight.add(execution.id)
      const chosen = byRun.get(next.run) ?? new Map<number, AgentLink | null>()
      byRun.set(next.run, chosen.set(next.position, lane.link))
    }
    await Promise.all([...byRun].map(([run, chosen]) => dispatch(run, chosen)))
  }

  async function limitOf(waiting: Waiting, hostId: number): Promise<number> {
    const [view] = await state.presence.views([hostId])
    const chosen = waiting.run.task.queueSeconds
    const usual = wasStopped(view?.linkFault) ? stoppedQueueSeconds : defaultQueueSeconds
    return (chosen ?? (view && view.status !== 'OFFLINE' ? usual : 0)) * 1000
  }

  /** Whether an agent may be on its way back of which this server, killed and started again, knows nothing (P34). */
  async function mayReturn(hostId: number): Promise<boolean> {
    if (state.clock.monotonic() >= state.returnsUntil) return false
    const [view] = await state.presence.views([hostId])
    if (view?.lastHeartbeatAt != null) return false
    const host = await state.store.get('hosts', hostId)
    return host?.agent != null && host.agent.tokenHash !== null
  }

  function lastHeard(at: string | null | undefined): string {
    if (at == null) return 'has never been heard'
    return `was last heard ${Math.max(0, Math.round((state.clock.now() - Date.parse(at)) / 1000))} s ago`
  }

  /** Marks as UNREACHABLE what has waited for this host longer than it may. */
  async function giveUp(hostId: number, lane: HostLane): Promise<void> {
    const now = state.clock.monotonic()
    const given = new Set<Waiting>()
    const judged = lane.waiting.slice()
    for (const entry of judged)
      if (now >= entry.run.graceUntil && now - entry.since >= (await limitOf(entry, hostId))) given.add(entry)
    if (given.size === 0 || (await mayReturn(hostId)) || lane.link || state.stopping) return
    // Others may have joined or left the queue meanwhile: only those are taken out that were judged.
    lane.waiting = lane.waiting.filter((entry) => !given.has(entry))
    const [view] = await state.presence.views([hostId])
    const at = isoTime(state.clock.now())
    const giveUpOn = async (entry: Waiting) => {
      const { run, position } = entry
      faultPoint('server.unreachable.before')
      await state.change(run, [position], (current) => {
        if (current.status !== 'PENDING' || state.held.has(run.task.id)) return null
        // Why it is WARNING is not why nothing can be sent to it.
        const offline = view?.status === 'OFFLINE' ? view.statusReason : null
        const fault = faultInBrackets(view?.linkFault)
        const why = offline
          ? `OFFLINE: ${offline}`
          : `not linked${fault}, and ${lastHeard(view?.lastHeartbeatAt)}`
        return ended(current, 'UNREACHABLE', at, `${current.hostname} is ${why}`)
      })
      faultPoint('server.unreachable.after')
      given.delete(entry)
    }
    try {
      for (const entry of given) await giveUpOn(entry)
    } finally {
      // What a full disk kept from being written waits on.
      lane.waiting.unshift(...given)
    }
  }

  /** All hosts at once: one fsync makes the ends of many durable. */
  const goOn = (hostId: number, lane: HostLane) => (lane.link ? pump(hostId) : giveUp(hostId, lane))

  return {
    async offer(run, positions) {
      const chosen = new Map<number, AgentLink | null>()
      const unreachable = new Set<number>()
      for (const position of positions) {
        const execution = run.executions[position]
        if (execution?.status !== 'PENDING') continue
        const lane = state.lane(execution.hostId)
        if (room(lane) > 0 && lane.waiting.length === 0) {
          lane.inFlight.add(execution.id)
          chosen.set(position, lane.link)
        } else {
          lane.waiting.push({ run, position, since: state.clock.monotonic() })
          chosen.set(position, null)
          if (!lane.link) unreachable.add(execution.hostId)
        }
      }
      await dispatch(run, chosen)
      await Promise.all([...unreachable].map((hostId) => goOn(hostId, state.lane(hostId))))
    },

    pump,

    async resend(run, link) {
      const about = await aboutHosts([link])
      const execution = run.ofHost(link.hostId)
      // An agent that was replaced by an older one: silence then makes the execution LOST, which is what it is.
      if (
        execution?.status === 'RUNNING' &&
        !takingBack.has(execution.id) &&
        unfit(run, link) === null &&
        sealedFault(state, run) === null
      )
        send(run, link, about)
    },

    unlinked(hostId) {
      const now = state.clock.monotonic()
      for (const entry of state.lane(hostId).waiting) entry.since = now
    },

    async sweep() {
      // All that it does is written first: it would fail for each host, four times a second, and say so each time.
      if (state.store.readOnlyReason !== null) return
      const again = notTakenBack
      notTakenBack = []
      await Promise.all(again.map(({ run, positions }) => takeBack(run, positions)))
      const waiting = [...state.lanes].filter(([, lane]) => lane.waiting.length > 0)
      await Promise.all(waiting.map(([hostId, lane]) => goOn(hostId, lane)))
    },

    waitingFor(hostId) {
      const lane = state.lanes.get(hostId)
      return lane
        ? lane.waiting
            .filter(({ run, position }) => run.executions[position]?.status === 'PENDING')
            .map(({ run }) => run.task.id)
        : []
    },
  }
}
