import { RsmError } from '../../core/errors.ts'
import type { TerminalOpen } from '../../core/protocol/messages.ts'
import { printable } from '../../core/text/printable.ts'
import { isoTime } from '../../disk/clock.ts'
import { stillAllowed } from '../access/credentials.ts'
import { signatureLife } from '../storage/keys.ts'
import type { AgentLink } from '../storage/ports/cluster.ts'
import type { NewTerminal } from '../storage/ports/terminals.ts'
import type { HostRecord } from '../storage/records/host.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import { beginRecording } from './recording.ts'
import type { TerminalsState } from './state.ts'
import { LiveTerminal } from './terminal.ts'

/** Milliseconds for an agent to open a terminal. */
const openWait = 15_000

/** Limits of open terminals: per user, per host, on this server. */
const mostOpen = { user: 50, host: 64, server: 1000 } as const

/** Opens terminals: creates recording and record, then asks the host. Removes both if the host fails. */
export function createOpener(state: TerminalsState) {
  const { store, ownership, member, clock, terminals, openings, recordings } = state

  async function onHost(terminal: LiveTerminal, link: AgentLink): Promise<void> {
    const { id, hostname } = terminal.record
    const opened = new Promise<void>((resolve, reject) => {
      const isOpen = () => {
        openings.delete(id)
        resolve()
      }
      openings.set(id, { resolve: isOpen, reject })
    })
    // A link that cannot take the frame closes during send, before this is awaited.
    opened.catch(() => undefined)
    const timer = setTimeout(() => {
      const message = `${hostname} did not open a terminal within ${openWait / 1000} s`
      openings.get(id)?.reject(new RsmError('conflict', message))
    }, openWait)
    try {
      if (!sendOpen(state, link, terminal)) throw lostLink(hostname)
      await opened
    } catch (error) {
      // Prevent an orphaned shell.
      link.send('TERMINAL_CLOSE', { sessionId: id })
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  async function discard(terminal: LiveTerminal): Promise<void> {
    const { id } = terminal.record
    await terminal.recording?.end().catch(() => undefined)
    // Only the reason for the failure matters to the user; retention removes leftovers.
    await recordings.forget(id).catch(() => undefined)
    await ownership.release(member, [id]).catch(() => undefined)
    await store.transact((tx) => tx.remove('terminals', id)).catch(() => state.unremoved.add(id))
    // Last, because an open session that is not in this map would be adopted.
    terminals.delete(id)
  }

  return async function open({ record: asked, caller }: NewTerminal): Promise<void> {
    const { id, hostId } = asked
    const link = state.agents.get(hostId)
    const host = refuseWithout(await store.get('hosts', hostId), link, hostId)
    const refusal = tooMany(terminals.values(), asked)
    if (refusal) throw refusal
    const record: TerminalRecord = { ...asked, ...host, recorded: state.record !== false }
    const terminal = new LiveTerminal(record, link ?? null, clock, state.events)
    terminals.set(id, terminal)
    // Clients cannot attach before the host has it.
    openings.set(id, { resolve: () => undefined, reject: () => undefined })
    try {
      if ((await ownership.claim(member, [id])).length === 0)
        throw new RsmError('unavailable', 'This server is leaving its store', { retryAfter: 5 })
      if (record.recorded)
        terminal.recording = await beginRecording(recordings, record, state.recordingOptions(id), state.log)
      await store.transact(async (tx) => {
        await stillAllowed(tx, caller, 'execute')
        tx.put('terminals', record)
      })
      if (!terminal.host.link || terminal.end) throw lostLink(record.hostname)
      await onHost(terminal, terminal.host.link)
    } catch (error) {
      await discard(terminal)
      throw error
    } finally {
      openings.delete(id)
    }
  }
}

/** Sends TERMINAL_OPEN, signed for this link; `after` if it resumes an existing terminal. */
export function sendOpen(
  { keys, clock }: Pick<TerminalsState, 'keys' | 'clock'>,
  link: AgentLink,
  { record, host: { input } }: LiveTerminal,
  after?: number,
): boolean {
  const { id: sessionId, cols, rows, runAs, shell, term, trueColor, command, noStdin } = record
  const linkId = link.hello?.linkId
  const payload: Omit<TerminalOpen, 'expiry' | 'signature' | 'keyId'> = {
    sessionId,
    cols,
    rows,
    ...(runAs === null ? {} : { runAs }),
    ...(shell === null ? {} : { shell }),
    ...(term === null ? {} : { term }),
    ...(trueColor ? { trueColor } : {}),
    ...(command === null ? {} : { command }),
    ...(noStdin ? { noStdin } : {}),
    ...(after === undefined ? {} : { after }),
    inputKey: input.offer(),
    ...(linkId === undefined ? {} : { linkId }),
  }
  const expiry = isoTime(clock.now() + signatureLife)
  return link.send('TERMINAL_OPEN', keys.sign('TERMINAL_OPEN', link.agentId, payload, expiry))
}

export const lostLink = (hostname: string): RsmError =>
  new RsmError('conflict', `${hostname} disconnected while opening a terminal; try again`)

/** Host and agent for a terminal; throws `conflict` with the reason if it cannot be opened. */
function refuseWithout(
  host: HostRecord | undefined,
  link: AgentLink | undefined,
  hostId: number,
): { agentId: string; hostname: string } {
  const hostname = host?.hostname ?? String(hostId)
  if (!host?.agent) throw new RsmError('conflict', `${hostname} has no agent, so it cannot open terminals`)
  if (!link)
    throw new RsmError(
      'conflict',
      `The agent of ${hostname} is not connected, so it cannot open a terminal: rsm hosts doctor ${hostname}`,
    )
  if (!link.hello)
    throw new RsmError(
      'conflict',
      `The agent of ${hostname} does not support terminals: it is not an rsm agent`,
    )
  const { terminal, terminalLack = 'its agent cannot open terminals, or is configured not to' } =
    link.hello.capabilities
  if (!terminal)
    throw new RsmError('conflict', `${hostname} has no terminal facility: ${printable(terminalLack)}`)
  return { agentId: host.agent.agentId, hostname }
}

function tooMany(
  terminals: Iterable<LiveTerminal>,
  { hostId, userId }: Pick<TerminalRecord, 'hostId' | 'userId'>,
): RsmError | null {
  const open = { user: 0, host: 0, server: 0 }
  for (const { record, end } of terminals) {
    if (end) continue
    open.server++
    if (record.userId === userId) open.user++
    if (record.hostId === hostId) open.host++
  }
  if (open.user >= mostOpen.user)
    return new RsmError('conflict', `You have ${open.user} terminals open, the limit; close some first`)
  if (open.host >= mostOpen.host)
    return new RsmError('conflict', `${open.host} terminals are open on this host, the limit`)
  if (open.server >= mostOpen.server)
    return new RsmError('conflict', `${open.server} terminals are open on this server, the limit`)
  return null
}
