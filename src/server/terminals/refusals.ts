import { RsmError } from '../../core/errors.ts'
import { printable } from '../../core/text/printable.ts'
import type { AgentLink } from '../storage/ports/agent-link.ts'
import type { HostRecord } from '../storage/records/host.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import type { LiveTerminal } from './terminal.ts'

/** Terminals that are open at once: of one user, on one host, on this server. */
const most = { user: 50, host: 64, server: 1000 } as const

/** The host and agent that a terminal is opened on; `conflict` says why it can't be. */
export function refuseWithout(
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
export function tooMany(
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
  if (open.user >= most.user)
    return new RsmError(
      'conflict',
      `You have ${open.user} terminals open, which is the most; close some first`,
    )
  if (open.host >= most.host)
    return new RsmError('conflict', `${open.host} terminals are open on this host, which is the most`)
  if (open.server >= most.server)
    return new RsmError('conflict', `${open.server} terminals are open on this server, which is the most`)
  return null
}
