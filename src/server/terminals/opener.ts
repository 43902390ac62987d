import { RsmError } from '../../core/errors.ts'
import type { TerminalOpen } from '../../core/protocol/messages.ts'
import { printable } from '../../core/text/printable.ts'
import { isoTime } from '../../disk/clock.ts'
import { stillAllowed } from '../access/credentials.ts'
import { signatureLife } from '../storage/keys/keys.ts'
import type { AgentLink } from '../storage/ports/agent-link.ts'
import type { NewTerminal } from '../storage/ports/terminal-client.ts'
import type { HostRecord } from '../storage/records/host.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import { beginRecording } from './recording.ts'
import type { TerminalsState } from './state.ts'
import { LiveTerminal } from './terminal.ts'

/** How long an agent may take to open a terminal. */
const openWait = 15_000

/** Terminals that are open at once: of one user, on one host, on this server. */
const mostOpen = { user: 50, host: 64, server: 1000 } as const

/** Opens terminals: recording and record first, then the host. What its host does not open leaves nothing behind. */
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
    // A link that takes no more closes while it is sent to, before anyone awaits this.
    opened.catch(() => undefined)
    const timer = setTimeout(() => {
      const message = `${hostname} did not open a terminal within ${openWait / 1000} s`
      openings.get(id)?.reject(new RsmError('conflict', message))
    }, openWait)
    try {
      if (!sendOpen(state, link, terminal)) throw lostLink(hostname)
      await opened
    } catch (error) {
      // Whoever ended it meanwhile must not leave a shell that nobody knows of.
      link.send('TERMINAL_CLOSE', { sessionId: id })
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  async function discard(terminal: LiveTerminal): Promise<void> {
    const { id } = terminal.record
    await terminal.recording?.end().catch(() => undefined)
    // Why it was not opened is what its user has to hear; retention removes what stays here.
    await recordings.forget(id).catch(() => undefined)
    await ownership.release(member, [id]).catch(() => undefined)
    await store.transact((tx) => tx.remove('terminals', id)).catch(() => state.unremoved.add(id))
    // Only now: an open session that is not here is one to take up.
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
    // Nothing attaches to it before its host has it.
    openings.set(id, { resolve: () => undefined, reject: () => undefined })
    try {
      if ((await ownership.claim(member, [id])).length === 0)
        throw new RsmError('unavailable', 'This server leaves its store just now', { retryAfter: 5 })
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

/** Sends TERMINAL_OPEN, signed for this link; `after` where it takes up a terminal that lives. */
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
  new RsmError('conflict', `${hostname} lost its link while it was to open a terminal; try again`)

/** The host and agent that a terminal is opened on; `conflict` says why it can't be. */
function refuseWithout(
  host: HostRecord | undefined,
  link: AgentLink | undefined,
  hostId: number,
): { agentId: string; hostname: string } {
  const hostname = host?.hostname ?? String(hostId)
  if (!host?.agent) throw new RsmError('conflict', `${hostname} has no agent, and so no terminals`)
  if (!link)
    throw new RsmError(
      'conflict',
      `The agent of ${hostname} has no link just now, and a terminal needs one: rsm hosts doctor ${hostname}`,
    )
  if (!link.hello)
    throw new RsmError('conflict', `The agent of ${hostname} knows no terminals: it is not one of rsm`)
  const { terminal, terminalLack = "its agent can't open one there, or was told not to" } =
    link.hello.capabilities
  if (!terminal)
    throw new RsmError('conflict', `${hostname} has no terminal facility: ${printable(terminalLack)}`)
  return { agentId: host.agent.agentId, hostname }
}

/** Why there are too many terminals for one more, or null. */
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
    return new RsmError(
      'conflict',
      `You have ${open.user} terminals open, which is the most; close some first`,
    )
  if (open.host >= mostOpen.host)
    return new RsmError('conflict', `${open.host} terminals are open on this host, which is the most`)
  if (open.server >= mostOpen.server)
    return new RsmError('conflict', `${open.server} terminals are open on this server, which is the most`)
  return null
}
